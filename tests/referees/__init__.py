"""Judges from outside: conformance and security scanners of other people, and attacks they do not try."""
