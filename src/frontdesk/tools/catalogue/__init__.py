"""Every tool there is: where they come from, and what changed."""
