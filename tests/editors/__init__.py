"""Tests with published editors and other clients of the Agent Client Protocol."""
