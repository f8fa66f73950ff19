"""The doors of the memory room."""
