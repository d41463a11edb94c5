"""The ask/tell contract, a check that an algorithm keeps it, and the algorithms, one file each."""
