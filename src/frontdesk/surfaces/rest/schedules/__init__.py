"""The HTTP API of the scheduler."""
