"""How many tasks there are, and how they stand."""
