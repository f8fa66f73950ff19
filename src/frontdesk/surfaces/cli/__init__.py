"""The frontdesk command."""
