"""The built-in host: agents that live in the database of Frontdesk itself."""
