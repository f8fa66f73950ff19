"""Measures the claims: each is a ratio against a named peer or a minimal server in the same run."""
