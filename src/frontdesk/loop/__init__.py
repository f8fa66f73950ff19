"""The built-in agent's turn: a model, tools in, events out."""
