"""`frontdesk tools`."""
