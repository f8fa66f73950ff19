"""Measures the client of Agent 365's platform: the cost of the agent's id, and the cost of the platform's own SDK."""
