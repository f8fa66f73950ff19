"""What can be asked of the memory room: one schema for the tools of agents and for the API of apps."""
