"""The names that a person puts things under."""
