"""Puts what the tools of the memory room came to into words that an agent can act on."""
