"""What schedules are due for."""
