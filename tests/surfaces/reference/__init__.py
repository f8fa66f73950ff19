"""The pages under docs/reference, held to the code."""
