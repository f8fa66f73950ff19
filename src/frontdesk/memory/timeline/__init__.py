"""Everything in the order of time, and what can be told from it."""
