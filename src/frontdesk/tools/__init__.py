"""Which tools exist, and which an agent should hold."""
