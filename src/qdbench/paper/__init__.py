"""The paper's experiment: its protocol, its findings, and a function that repeats it."""
