"""Which agent is meant when nobody names one."""
