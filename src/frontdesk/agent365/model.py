"""Defines a server as the platform names it, the scope that its token needs, and chat messages."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from frontdesk.agent365.environment import SHARED_APP_ID, SHARED_APP_URI, get_mcp_platform_authentication_scope
from frontdesk.agent365.errors import InvalidArgument

# Some platforms send no status; their servers count as ready.
READY_STATUSES = ("", "ready")


@dataclass
class MCPServerConfig:
    """A tool server: its names, its address, and its headers. `headers` contain tokens and are never shown."""

    mcp_server_name: str
    mcp_server_unique_name: str
    url: str | None = None
    headers: dict[str, str] | None = field(default=None, repr=False)
    audience: str | None = None
    scope: str | None = None
    publisher: str | None = None
    id: str | None = None
    all_connections_url: str | None = None
    missing_connections_url: str | None = None
    connectivity_status: str | None = None

    def __post_init__(self) -> None:
        if not self.mcp_server_name:
            raise InvalidArgument("mcp_server_name cannot be empty")
        if not self.mcp_server_unique_name:
            raise InvalidArgument("mcp_server_unique_name cannot be empty")

    @property
    def is_ready(self) -> bool:
        """Whether it can be used now; otherwise it waits for a person to connect an account."""
        return (self.connectivity_status or "").strip().lower() in READY_STATUSES


@dataclass
class ToolOptions:
    """Names the calling framework, for the User-Agent."""

    orchestrator_name: str | None = None


class ChatHistoryMessage(BaseModel):
    """One message of a chat, in the platform's format."""

    model_config = ConfigDict(populate_by_name=True)

    id: str | None = None
    role: Literal["user", "assistant", "system"]
    content: str
    timestamp: datetime | None = None

    @field_validator("content")
    @classmethod
    def _said(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("content cannot be empty or whitespace")
        return value


class ChatMessageRequest(BaseModel):
    """A chat in the platform's format: the user's new message, and the earlier messages."""

    model_config = ConfigDict(populate_by_name=True)

    conversation_id: str = Field(alias="conversationId")
    message_id: str = Field(alias="messageId")
    user_message: str = Field(alias="userMessage")
    chat_history: list[ChatHistoryMessage] = Field(alias="chatHistory")

    @field_validator("conversation_id", "message_id", "user_message")
    @classmethod
    def _said(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("Field cannot be empty or whitespace")
        return value


SHARED_AUDIENCES = frozenset({"default", SHARED_APP_ID, SHARED_APP_URI})


def is_v2_server(server: MCPServerConfig) -> bool:
    """Whether a server has its own audience (V2)."""
    return own_audience(server) is not None


def resolve_token_scope_for_server(server: MCPServerConfig, environ: Mapping[str, str] = os.environ) -> str:
    """The scope of the token that a server needs."""
    audience = own_audience(server)
    if audience is None:
        return get_mcp_platform_authentication_scope(environ)[0]
    return f"{audience}/{server.scope or '.default'}"


def own_audience(server: MCPServerConfig) -> str | None:
    """A server's own audience, as scopes spell it; None for the shared one."""
    if server.audience is None:
        return None
    audience = server.audience.strip().lower()
    return None if audience in SHARED_AUDIENCES else audience
