"""Replies through the database: what one replica says, the others can tell."""
