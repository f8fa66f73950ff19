"""What a person did, and how it felt."""
