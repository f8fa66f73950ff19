"""Measured claims: each is a ratio against a named peer or floor in the same run."""
