"""Texts as vectors: the model that ships with the package, or one elsewhere."""
