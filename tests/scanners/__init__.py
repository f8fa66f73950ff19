"""Conformance and security scanners that others wrote, and attacks that they do not try."""
