"""How many due prompts a second the schedule hands over, how late, and what it costs to wait, beside its peers."""
