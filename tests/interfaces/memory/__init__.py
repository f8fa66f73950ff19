"""Tests the interfaces of the memory capability."""
