"""Occurrences that were begun before."""
