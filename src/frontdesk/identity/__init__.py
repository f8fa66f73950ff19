"""Identifies callers, decides what they may do, and builds the headers that identify us to other servers."""
