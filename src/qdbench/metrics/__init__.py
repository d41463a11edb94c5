"""Pure functions of arrays: scores of a set of elites."""
