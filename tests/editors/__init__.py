"""Editors and other clients of the Agent Client Protocol, as published."""
