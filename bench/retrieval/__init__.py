"""How well tools are found, before any use and after some, how fast, and in how much memory."""
