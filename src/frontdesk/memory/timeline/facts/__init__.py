"""What insights are worked out from."""
