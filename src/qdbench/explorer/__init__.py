"""The explorer: archives in a browser, and every elite's gait by a click."""
