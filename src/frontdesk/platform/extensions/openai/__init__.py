"""Gives the tools of the platform's servers to agents of OpenAI Agents."""

from importlib import import_module

try:
    import_module("agents")
except ImportError as missing:
    raise ImportError(
        "Tools for OpenAI Agents need its package: pip install 'frontdesk[openai-agents]'", name=missing.name
    ) from missing

from frontdesk.platform.extensions.openai.service import McpToolRegistrationService

__all__ = ["McpToolRegistrationService"]
