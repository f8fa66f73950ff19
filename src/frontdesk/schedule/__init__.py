"""Prompts that come later: when they are due, who may set them, and how they reach an agent."""
