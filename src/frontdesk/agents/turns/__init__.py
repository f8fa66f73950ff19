"""Turns under way: one at a time in a lane, under a lease, so that a crash is noticed and nothing runs twice."""
