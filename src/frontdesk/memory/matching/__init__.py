"""How records are picked, put in order and handed out a page at a time."""
