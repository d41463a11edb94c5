"""Read stored runs, measure and compare them."""
