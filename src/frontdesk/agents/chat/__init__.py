"""Chat of people with agents: sessions, and replies that are told as they come to be."""
