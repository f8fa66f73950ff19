"""Measures the pages in an installation with much data against one with none."""
