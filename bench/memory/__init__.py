"""Measures how well and how quickly a search finds people's memories, also among a million of them."""
