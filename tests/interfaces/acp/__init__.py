"""The agent as an editor meets it: a process, and frames on its pipes."""
