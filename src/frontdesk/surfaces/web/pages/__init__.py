"""One folder a page; each answers one question."""
