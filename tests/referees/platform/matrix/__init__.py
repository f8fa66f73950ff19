"""The cases, by what they vary; each file has its own."""
