"""A scheduler under faults: its clock, its receiver, its worker processes, and a reader of its history."""
