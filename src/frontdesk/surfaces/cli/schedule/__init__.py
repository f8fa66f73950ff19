"""`frontdesk schedule`."""
