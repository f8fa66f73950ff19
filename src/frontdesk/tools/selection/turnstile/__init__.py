"""Lets one at a time change an agent's tools, whichever process it is in."""
