"""The built-in host: agents in Frontdesk's own database."""
