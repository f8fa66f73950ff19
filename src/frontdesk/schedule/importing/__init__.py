"""Takes over the schedules of a PromptYoSelf database."""
