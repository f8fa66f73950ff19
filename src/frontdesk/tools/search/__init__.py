"""Finds tools by their words, their meaning, and what they were good for before."""
