"""What was said in the conversations of the built-in agents."""
