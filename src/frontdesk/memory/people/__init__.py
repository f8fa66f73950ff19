"""Who there is, where they live, and how all of theirs is handed out or erased."""
