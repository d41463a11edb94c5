"""Tasks: what is evaluated, and by which rules."""
