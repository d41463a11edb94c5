"""Runs on disk: the only room that knows which file holds what, and where it lies."""
