"""The servers that are measured, each a process of its own with the same tool to call."""
