"""Measures the cost of a tool call through a proxy: Frontdesk's `call_tool`, mcp-proxy, ContextForge, and no proxy."""
