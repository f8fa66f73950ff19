"""Who keeps something here, for whoever runs the house."""
