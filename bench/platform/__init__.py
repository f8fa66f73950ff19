"""Measures the client of Agent 365's platform: what the agent's id costs, and what the platform's own SDK takes."""
