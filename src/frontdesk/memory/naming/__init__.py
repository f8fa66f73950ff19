"""Knows a record by the first characters of its id, as people type them."""
