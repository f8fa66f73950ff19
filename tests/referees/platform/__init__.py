"""Our client of the platform beside Microsoft's: the same calls against the same platform, compared line by line."""
