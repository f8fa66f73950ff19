"""Compares our client of Agent 365 with Microsoft's: the same calls to the same platform."""
