"""The schedule tools: prompts that come later."""
