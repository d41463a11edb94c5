"""Pictures; the only place that imports matplotlib (the extra `plot`)."""
