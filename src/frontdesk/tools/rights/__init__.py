"""Who may use which tools."""
