"""Which tools an agent should hold: decided first, then carried out."""
