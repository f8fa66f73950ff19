"""The pages about tools: found, handed out and tried, where they come from, and how they are used."""
