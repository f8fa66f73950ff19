"""Clients of the Agent Client Protocol for tests."""
