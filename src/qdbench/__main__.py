"""`python -m qdbench` is the `qdbench` command."""

from qdbench.cli import main

main()
