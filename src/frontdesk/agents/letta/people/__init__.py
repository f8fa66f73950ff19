"""Whom each agent of a Letta server serves, so that what it learns of one person reaches nobody else."""
