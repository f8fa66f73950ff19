"""Real parts for the tests: a server process, a PostgreSQL, an authorization server, and others."""
