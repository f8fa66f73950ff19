"""`frontdesk memory`: what a person wants remembered."""
