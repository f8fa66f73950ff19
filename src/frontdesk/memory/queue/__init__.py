"""What a person has their agents do."""
