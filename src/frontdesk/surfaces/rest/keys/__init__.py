"""People's own keys, over HTTP."""
