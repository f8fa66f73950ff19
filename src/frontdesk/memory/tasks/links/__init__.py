"""What one task is to another, and what must be done before it."""
