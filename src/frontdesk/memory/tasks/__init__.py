"""What a person has to do."""
