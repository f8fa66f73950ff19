"""Commands that are run in a session's folders."""
