"""What was not read yet."""
