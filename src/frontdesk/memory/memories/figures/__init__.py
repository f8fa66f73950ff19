"""What is told of all memories."""
