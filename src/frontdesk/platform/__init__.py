"""The tooling platform of Agent 365: a client that does what the SDK does, and a stand-in to run on a laptop."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from frontdesk.platform.addresses import (
        build_mcp_server_url,
        get_chat_history_endpoint,
        get_mcp_base_url,
        get_tooling_gateway_for_digital_worker,
    )
    from frontdesk.platform.application import get_application_name, reset_application_name_cache
    from frontdesk.platform.audiences import resolve_token_scope_for_server
    from frontdesk.platform.constants import HEADER_AGENT_ID, HEADER_CHANNEL_ID, Constants
    from frontdesk.platform.environment import (
        get_mcp_platform_authentication_scope,
        get_observability_authentication_scope,
        is_development_environment,
    )
    from frontdesk.platform.errors import (
        ChatHistoryRefused,
        DiscoveryFailed,
        InvalidArgument,
        ManifestUnreadable,
        McpConnectionsRequiredError,
        PlatformError,
        PlatformTimeout,
        PlatformUnreachable,
        PlatformUnreadable,
        TokenContextMissing,
        TokenNotObtained,
    )
    from frontdesk.platform.model import ChatHistoryMessage, ChatMessageRequest, MCPServerConfig, ToolOptions
    from frontdesk.platform.result import OperationError, OperationResult
    from frontdesk.platform.service import McpToolServerConfigurationService
    from frontdesk.platform.user_agent import get_user_agent_header
    from frontdesk.platform.utility import Utility
    from frontdesk.platform.who import get_agent_id_from_token, get_app_id_from_token, resolve_agent_identity

__all__ = [
    "HEADER_AGENT_ID",
    "HEADER_CHANNEL_ID",
    "ChatHistoryMessage",
    "ChatHistoryRefused",
    "ChatMessageRequest",
    "Constants",
    "DiscoveryFailed",
    "InvalidArgument",
    "MCPServerConfig",
    "ManifestUnreadable",
    "McpConnectionsRequiredError",
    "McpToolServerConfigurationService",
    "OperationError",
    "OperationResult",
    "PlatformError",
    "PlatformTimeout",
    "PlatformUnreachable",
    "PlatformUnreadable",
    "TokenContextMissing",
    "TokenNotObtained",
    "ToolOptions",
    "Utility",
    "build_mcp_server_url",
    "get_agent_id_from_token",
    "get_app_id_from_token",
    "get_application_name",
    "get_chat_history_endpoint",
    "get_mcp_base_url",
    "get_mcp_platform_authentication_scope",
    "get_observability_authentication_scope",
    "get_tooling_gateway_for_digital_worker",
    "get_user_agent_header",
    "is_development_environment",
    "reset_application_name_cache",
    "resolve_agent_identity",
    "resolve_token_scope_for_server",
]

# By name, so that a server of the house does not load the client, nor a command the server.
_HOMES = {
    "ChatHistoryMessage": "model",
    "ChatHistoryRefused": "errors",
    "ChatMessageRequest": "model",
    "Constants": "constants",
    "DiscoveryFailed": "errors",
    "HEADER_AGENT_ID": "constants",
    "HEADER_CHANNEL_ID": "constants",
    "InvalidArgument": "errors",
    "MCPServerConfig": "model",
    "ManifestUnreadable": "errors",
    "McpConnectionsRequiredError": "errors",
    "McpToolServerConfigurationService": "service",
    "OperationError": "result",
    "OperationResult": "result",
    "PlatformError": "errors",
    "PlatformTimeout": "errors",
    "PlatformUnreachable": "errors",
    "PlatformUnreadable": "errors",
    "TokenContextMissing": "errors",
    "TokenNotObtained": "errors",
    "ToolOptions": "model",
    "Utility": "utility",
    "build_mcp_server_url": "addresses",
    "get_agent_id_from_token": "who",
    "get_app_id_from_token": "who",
    "get_application_name": "application",
    "get_chat_history_endpoint": "addresses",
    "get_mcp_base_url": "addresses",
    "get_mcp_platform_authentication_scope": "environment",
    "get_observability_authentication_scope": "environment",
    "get_tooling_gateway_for_digital_worker": "addresses",
    "get_user_agent_header": "user_agent",
    "is_development_environment": "environment",
    "reset_application_name_cache": "application",
    "resolve_agent_identity": "who",
    "resolve_token_scope_for_server": "audiences",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'frontdesk.platform' has no attribute '{name}'")
    return getattr(import_module(f"frontdesk.platform.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
