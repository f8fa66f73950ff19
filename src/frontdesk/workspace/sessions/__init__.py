"""Editors' sessions: which conversation of which agent, in which folders, and how it is set."""
