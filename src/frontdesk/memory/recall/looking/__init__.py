"""Looks among a person's items, by what is asked of them beside the text."""
