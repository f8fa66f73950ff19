"""The HTTP API of the memory room."""
