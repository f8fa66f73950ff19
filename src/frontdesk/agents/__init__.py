"""The agents, behind one port: built in, or on a Letta server."""
