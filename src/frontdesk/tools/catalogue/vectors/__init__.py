"""What tools mean, kept so that no text is embedded twice."""
