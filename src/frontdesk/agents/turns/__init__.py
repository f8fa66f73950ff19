"""Turns of agents: one at a time for each lock, under a lease, so that a crash is noticed and no turn runs twice."""
