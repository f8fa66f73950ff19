"""Measures how many due prompts a second the schedule delivers, how late, and what waiting costs, beside its peers."""
