"""A believable day in a house that nobody lives in yet, made by running the product with a model that has scripts."""
