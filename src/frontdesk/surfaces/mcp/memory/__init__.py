"""The tools of a person's memory, at a door of their own."""
