"""Our own authorization server: a person logs in with what they have, and a client gets tokens of its own."""
