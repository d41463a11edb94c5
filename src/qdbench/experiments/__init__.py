"""Runs: the loop, and the folder a run leaves behind."""
