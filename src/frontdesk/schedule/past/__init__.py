"""What became of occurrences: their history, the dead letters, and the figures."""
