"""A client of Agent 365's tooling platform with the names of Microsoft's SDK, and a local platform for development."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from frontdesk.agent365.agent_identity import (
        Utility,
        get_agent_id_from_token,
        get_app_id_from_token,
        get_application_name,
        get_user_agent_header,
        reset_application_name_cache,
        resolve_agent_identity,
    )
    from frontdesk.agent365.client import McpToolServerConfigurationService
    from frontdesk.agent365.environment import (
        HEADER_AGENT_ID,
        HEADER_CHANNEL_ID,
        Constants,
        build_mcp_server_url,
        get_chat_history_endpoint,
        get_mcp_base_url,
        get_mcp_platform_authentication_scope,
        get_observability_authentication_scope,
        get_tooling_gateway_for_digital_worker,
        is_development_environment,
    )
    from frontdesk.agent365.errors import (
        ChatHistoryRefused,
        DiscoveryFailed,
        InvalidArgument,
        ManifestUnreadable,
        McpConnectionsRequiredError,
        OperationError,
        OperationResult,
        PlatformError,
        PlatformTimeout,
        PlatformUnreachable,
        PlatformUnreadable,
        TokenContextMissing,
        TokenNotObtained,
    )
    from frontdesk.agent365.model import (
        ChatHistoryMessage,
        ChatMessageRequest,
        MCPServerConfig,
        ToolOptions,
        resolve_token_scope_for_server,
    )

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

# Modules are named, not imported: a server must not load the client, and a command must not load the server.
_MODULES = {
    "ChatHistoryMessage": "model",
    "ChatHistoryRefused": "errors",
    "ChatMessageRequest": "model",
    "Constants": "environment",
    "DiscoveryFailed": "errors",
    "HEADER_AGENT_ID": "environment",
    "HEADER_CHANNEL_ID": "environment",
    "InvalidArgument": "errors",
    "MCPServerConfig": "model",
    "ManifestUnreadable": "errors",
    "McpConnectionsRequiredError": "errors",
    "McpToolServerConfigurationService": "client",
    "OperationError": "errors",
    "OperationResult": "errors",
    "PlatformError": "errors",
    "PlatformTimeout": "errors",
    "PlatformUnreachable": "errors",
    "PlatformUnreadable": "errors",
    "TokenContextMissing": "errors",
    "TokenNotObtained": "errors",
    "ToolOptions": "model",
    "Utility": "agent_identity",
    "build_mcp_server_url": "environment",
    "get_agent_id_from_token": "agent_identity",
    "get_app_id_from_token": "agent_identity",
    "get_application_name": "agent_identity",
    "get_chat_history_endpoint": "environment",
    "get_mcp_base_url": "environment",
    "get_mcp_platform_authentication_scope": "environment",
    "get_observability_authentication_scope": "environment",
    "get_tooling_gateway_for_digital_worker": "environment",
    "get_user_agent_header": "agent_identity",
    "is_development_environment": "environment",
    "reset_application_name_cache": "agent_identity",
    "resolve_agent_identity": "agent_identity",
    "resolve_token_scope_for_server": "model",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'frontdesk.agent365' has no attribute '{name}'")
    return getattr(import_module(f"frontdesk.agent365.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
