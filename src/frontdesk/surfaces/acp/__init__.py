"""The Agent Client Protocol: the agents of this house in code editors."""
