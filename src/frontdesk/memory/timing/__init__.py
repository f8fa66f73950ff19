"""Where a person's time goes."""
