"""Gives the tools of the platform's servers to agents of other frameworks; each needs its extra installed."""
