"""All schedules and runs at a glance, however many there are."""
