"""How occurrences get a worker."""
