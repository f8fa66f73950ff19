"""Gives the tools of the platform's servers to agents of Microsoft's Agent Framework."""

from importlib import import_module

try:
    import_module("agent_framework")
    # Without it the framework connects to no MCP server, yet does not bring it.
    import_module("tenacity")
except ImportError as missing:
    raise ImportError(
        "Tools for Agent Framework need its packages: pip install 'frontdesk[agent-framework]'", name=missing.name
    ) from missing

from frontdesk.platform.extensions.agentframework.service import McpToolRegistrationService

__all__ = ["McpToolRegistrationService"]
