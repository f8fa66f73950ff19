"""Which schedule wakes an agent for a task."""
