"""What stands on a person's timeline, whatever it is."""
