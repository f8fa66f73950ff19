"""The files of a session's folders, and nothing beyond them."""
