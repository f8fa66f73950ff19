"""The lines in which agents' prompts stand."""
