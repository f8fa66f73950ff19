"""Tests the pages in a real browser."""
