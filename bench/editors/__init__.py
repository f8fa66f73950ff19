"""Measures what editors notice: what the protocol adds to a turn, and how long a start takes."""
