"""Whether the tools that a manifest declares are there on the live servers."""
