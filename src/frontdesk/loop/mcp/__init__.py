"""Tools of MCP servers, called over HTTP on behalf of a user: one session per server, user and token."""
