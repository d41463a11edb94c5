"""Read runs, measure them after the fact, compare them."""
