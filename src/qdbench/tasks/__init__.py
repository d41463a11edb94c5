"""Tasks: what is evaluated, and how it is scored."""
