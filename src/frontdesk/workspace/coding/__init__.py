"""The tools with which an agent works on code."""
