"""Figures and the HTML report. Only this room imports matplotlib (the extra `plot`)."""
