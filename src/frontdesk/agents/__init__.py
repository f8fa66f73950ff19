"""The agents themselves, behind one port: built in, or on a Letta server."""
