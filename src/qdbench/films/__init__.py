"""Elites in motion: which are shown, how they are drawn, and their files."""
