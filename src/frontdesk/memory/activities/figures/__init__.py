"""What is told of all activities."""
