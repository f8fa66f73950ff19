"""Measures the pages: what they take in an installation with much in it, against one with nothing."""
