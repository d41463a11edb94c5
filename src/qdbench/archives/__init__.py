"""Archives of elites: one insertion rule; the geometries only answer "which cell?"."""
