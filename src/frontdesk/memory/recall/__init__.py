"""Finds what a person has kept, by its words and by its meaning."""
