"""The HTTP API of the tools room."""
