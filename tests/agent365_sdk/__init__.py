"""Our client of Agent 365 beside Microsoft's: the same calls to the same platform, compared line by line."""
