"""What a call of a tool costs through a proxy: Frontdesk's `call_tool`, mcp-proxy and ContextForge, next to none."""
