"""What past use says about a tool."""
