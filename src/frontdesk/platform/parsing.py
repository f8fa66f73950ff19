"""Reads what a manifest or the platform says of servers; what makes no sense is left out, and told."""

import logging
import os
from collections.abc import Mapping
from typing import cast

from frontdesk.loop.mcp.model import is_plain_address
from frontdesk.platform.addresses import build_mcp_server_url
from frontdesk.platform.environment import VISIBLE
from frontdesk.platform.errors import InvalidArgument
from frontdesk.platform.model import MCPServerConfig

LIST = "mcpServers"

log = logging.getLogger("frontdesk.platform")


def parse_servers(
    document: object, environ: Mapping[str, str] = os.environ, logger: logging.Logger = log
) -> list[MCPServerConfig] | None:
    """The servers of `{"mcpServers": […]}` or of a bare list; None where it is neither."""
    wrapped = cast("dict[str, object]", document).get(LIST) if isinstance(document, dict) else document
    if not isinstance(wrapped, list):
        return None
    found = (parse_server(entry, environ, logger) for entry in cast("list[object]", wrapped))
    return [server for server in found if server is not None]


def parse_server(
    entry: object, environ: Mapping[str, str] = os.environ, logger: logging.Logger = log
) -> MCPServerConfig | None:
    """One server, or None where the entry is none."""
    if not isinstance(entry, dict):
        return None
    said = cast("dict[str, object]", entry)
    name, unique = _names(said)
    if not name or not unique:
        logger.warning("An MCP server without a name was left out; give it mcpServerName")
        return None
    try:
        url = _address(said, name, environ)
    except InvalidArgument as error:
        logger.warning("The MCP server %r was left out: %s", name[:60], error)
        return None
    return MCPServerConfig(
        name,
        unique,
        url,
        audience=_unless(said.get("audience"), "default"),
        scope=_unless(said.get("scope"), "null"),
        publisher=str(said["publisher"]) if said.get("publisher") is not None else None,
        id=_text(said.get("id")),
        all_connections_url=_text(said.get("allConnectionsUrl")),
        missing_connections_url=_text(said.get("missingConnectionsUrl")),
        connectivity_status=_text(said.get("connectivityStatus")),
    )


def _names(said: Mapping[str, object]) -> tuple[str | None, str | None]:
    """The name and the unique name; where one is not said, the other stands for it."""
    name, unique = said.get("mcpServerName"), said.get("mcpServerUniqueName")
    if name is None:
        name = unique
    if not isinstance(unique, str):
        unique = name
    return _filled(name), _filled(unique)


def _address(said: Mapping[str, object], name: str, environ: Mapping[str, str]) -> str:
    url = said.get("url")
    if not isinstance(url, str) or not url:
        return build_mcp_server_url(name, environ)
    if not VISIBLE.fullmatch(url) or not is_plain_address(url):
        raise InvalidArgument("its url must be http(s)://host/path, without spaces and without a login")
    return url


def _filled(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() and _is_text(value) else None


def _is_text(value: str) -> bool:
    """Half a character, which JSON can hold, cannot be in an address or the name of a variable."""
    return not any("\ud800" <= char <= "\udfff" for char in value)


def _unless(value: object, nothing: str) -> str | None:
    if not value or (isinstance(value, str) and value.lower() == nothing):
        return None
    return str(value)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
