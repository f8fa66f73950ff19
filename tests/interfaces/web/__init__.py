"""Tests the pages, in process."""
