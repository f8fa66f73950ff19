"""The headers of requests to the platform and to the servers that it names."""

import os
from collections.abc import Mapping
from uuid import uuid4

from frontdesk.identity.outbound import agent_id_from_token, header_value
from frontdesk.loop.mcp.model import HEADER_VALUE, bare_token
from frontdesk.loop.text import visible
from frontdesk.platform.application import get_application_name
from frontdesk.platform.constants import Constants
from frontdesk.platform.errors import InvalidArgument
from frontdesk.platform.model import MCPServerConfig, ToolOptions
from frontdesk.platform.turns import activity_id, blueprint_id, channels
from frontdesk.platform.user_agent import get_user_agent_header

Names = Constants.Headers


def gateway_headers(
    token: str, options: ToolOptions, agent_id: str | None, turn_context: object = None
) -> dict[str, str]:
    """For the request that lists servers."""
    headers = {
        Names.AUTHORIZATION: bearer(sendable(token, "auth_token")),
        Names.USER_AGENT: get_user_agent_header(options.orchestrator_name),
        Names.AGENT_ID: agent_id,
        Names.CORRELATION_ID: activity_id(turn_context) or str(uuid4()),
        **_channels(turn_context),
    }
    return {name: value for name, value in headers.items() if value}


def chat_headers(options: ToolOptions, turn_context: object) -> dict[str, str]:
    """For the request that sends a chat: it carries no token, and so does not say which agent sends it."""
    headers = {
        Names.USER_AGENT: get_user_agent_header(options.orchestrator_name),
        "Content-Type": "application/json",
        **_channels(turn_context),
    }
    return {name: value for name, value in headers.items() if value}


def server_headers(
    server: MCPServerConfig,
    auth_token: str | None,
    options: ToolOptions,
    turn_context: object = None,
    environ: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """For all requests to one server: with its own token, else the shared one."""
    own = dict(server.headers or {})
    shown = next((value for name, value in own.items() if name.lower() == "authorization"), None) or auth_token
    kept = {name: value for name, value in own.items() if value and name.lower() != "authorization"}
    headers = {Names.USER_AGENT: get_user_agent_header(options.orchestrator_name), **_channels(turn_context)}
    if bare_token(shown):
        token = sendable(shown, f"the token for MCP server '{visible(server.mcp_server_name)}'")
        headers[Names.AUTHORIZATION] = bearer(token)
        headers[Names.AGENT_ID] = agent_id_for_header(token, turn_context, environ)
    # Twice under one name, in whatever case, would be two headers.
    said = {name.lower() for name in kept}
    return kept | {name: value for name, value in headers.items() if value and name.lower() not in said}


def agent_id_for_header(
    token: str | None, turn_context: object = None, environ: Mapping[str, str] = os.environ
) -> str | None:
    """Who calls, by the best that is known: the turn's blueprint, the token's claims, the application's name."""
    found = blueprint_id(turn_context) or agent_id_from_token(bare_token(token))
    return found or header_value(get_application_name(environ) or "") or None


def sendable(token: str | None, what: str) -> str:
    """A token without the word before it, or words on why it cannot be sent; it is never quoted."""
    bare = bare_token(token)
    if bare is None:
        raise InvalidArgument(f"{what} cannot be empty or None")
    if not HEADER_VALUE.fullmatch(bare):
        raise InvalidArgument(f"{what} holds characters that no header can; check where it comes from")
    return bare


def bearer(token: str) -> str:
    return f"{Names.BEARER_PREFIX} {token}"


def _channels(turn_context: object) -> dict[str, str | None]:
    channel, sub_channel = channels(turn_context)
    return {Names.CHANNEL_ID: channel, Names.SUBCHANNEL_ID: sub_channel}
