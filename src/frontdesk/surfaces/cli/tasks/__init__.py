"""`frontdesk tasks`: a person's tasks, the time they take, and the work of agents on them."""
