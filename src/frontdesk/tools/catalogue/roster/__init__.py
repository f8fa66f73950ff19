"""Which servers the catalogue asks, and how they are."""
