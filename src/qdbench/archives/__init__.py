"""Containers of elites: one insertion rule; grid, CVT and unstructured only answer "which cell?"."""
