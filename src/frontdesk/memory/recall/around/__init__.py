"""What lies around an item."""
