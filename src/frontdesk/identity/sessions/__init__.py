"""A person's token that a client of the older protocol era left for its session."""
