"""Which items hold a word, and how much it says there."""
