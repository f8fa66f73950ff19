"""The measured servers, each a process of its own with the same tool."""
