"""Measures the pages: what they take in a house with much in it, against one with nothing."""
