"""What the adapters for other frameworks share: messages, and connections that outlive a call."""
