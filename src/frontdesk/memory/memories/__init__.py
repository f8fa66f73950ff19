"""What a person wants remembered."""
