"""Runs conformance and security scanners of other authors, and attacks that they do not try."""
