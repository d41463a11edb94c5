"""Metrics: pure functions of arrays, and one record for every metric."""
