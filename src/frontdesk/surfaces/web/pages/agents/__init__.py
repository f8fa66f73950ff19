"""Agents: who they are, what they hold and remember, and what they were asked."""
