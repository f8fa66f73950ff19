"""Tests the agent as an editor sees it: a process, and frames on its pipes."""
