"""Calls tools where they live, in the name of whoever asks."""
