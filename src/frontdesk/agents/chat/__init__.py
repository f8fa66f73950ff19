"""Chat of people with agents: sessions, and replies that are streamed while the agent works."""
