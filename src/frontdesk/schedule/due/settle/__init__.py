"""How occurrences end."""
