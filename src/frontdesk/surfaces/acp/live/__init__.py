"""Sessions that an editor has open."""
