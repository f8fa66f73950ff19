"""Parses tool servers from the platform's answer or from ToolingManifest.json.

Entries that are not valid are logged and left out.
"""

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from frontdesk.agent365.environment import MANIFEST_NAME, VISIBLE_ASCII, build_mcp_server_url
from frontdesk.agent365.errors import InvalidArgument, ManifestUnreadable
from frontdesk.agent365.model import MCPServerConfig
from frontdesk.mcp_client.model import is_plain_address

SERVERS_KEY = "mcpServers"

log = logging.getLogger("frontdesk.agent365")


def parse_servers(
    document: object, environ: Mapping[str, str] = os.environ, logger: logging.Logger = log
) -> list[MCPServerConfig] | None:
    """The servers of `{"mcpServers": […]}` or of a bare list; None where it is neither."""
    wrapped = cast("dict[str, object]", document).get(SERVERS_KEY) if isinstance(document, dict) else document
    if not isinstance(wrapped, list):
        return None
    found = (parse_server(entry, environ, logger) for entry in cast("list[object]", wrapped))
    return [server for server in found if server is not None]


def parse_server(
    entry: object, environ: Mapping[str, str] = os.environ, logger: logging.Logger = log
) -> MCPServerConfig | None:
    """Parse one server; None where the entry is not valid."""
    if not isinstance(entry, dict):
        return None
    said = cast("dict[str, object]", entry)
    name, unique = _parse_names(said)
    if not name or not unique:
        logger.warning("An MCP server without a name was left out; give it mcpServerName")
        return None
    try:
        url = _parse_address(said, name, environ)
    except InvalidArgument as error:
        logger.warning("The MCP server %r was left out: %s", name[:60], error)
        return None
    return MCPServerConfig(
        name,
        unique,
        url,
        audience=_value_unless(said.get("audience"), "default"),
        scope=_value_unless(said.get("scope"), "null"),
        publisher=str(said["publisher"]) if said.get("publisher") is not None else None,
        id=_text_or_none(said.get("id")),
        all_connections_url=_text_or_none(said.get("allConnectionsUrl")),
        missing_connections_url=_text_or_none(said.get("missingConnectionsUrl")),
        connectivity_status=_text_or_none(said.get("connectivityStatus")),
    )


def _parse_names(said: Mapping[str, object]) -> tuple[str | None, str | None]:
    """The name and the unique name; where one is missing, the other replaces it."""
    name, unique = said.get("mcpServerName"), said.get("mcpServerUniqueName")
    if name is None:
        name = unique
    if not isinstance(unique, str):
        unique = name
    return _non_empty_text(name), _non_empty_text(unique)


def _parse_address(said: Mapping[str, object], name: str, environ: Mapping[str, str]) -> str:
    url = said.get("url")
    if not isinstance(url, str) or not url:
        return build_mcp_server_url(name, environ)
    if not VISIBLE_ASCII.fullmatch(url) or not is_plain_address(url):
        raise InvalidArgument("its url must be http(s)://host/path, without spaces and without a login")
    return url


def _non_empty_text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() and _is_text(value) else None


def _is_text(value: str) -> bool:
    """Whether a value is text that can be encoded: JSON can hold half a surrogate pair, but an address or a variable
    cannot."""
    return not any("\ud800" <= char <= "\udfff" for char in value)


def _value_unless(value: object, nothing: str) -> str | None:
    if not value or (isinstance(value, str) and value.lower() == nothing):
        return None
    return str(value)


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


LARGEST_MANIFEST = 50_000_000


def find_manifest() -> Path | None:
    """The manifest in this folder, or in the one above."""
    try:
        here = Path.cwd()
        return next((path for folder in (here, here.parent) if (path := folder / MANIFEST_NAME).exists()), None)
    except OSError as error:
        raise ManifestUnreadable(str(error)) from error


def read_manifest_servers(
    environ: Mapping[str, str] = os.environ, logger: logging.Logger = log
) -> list[MCPServerConfig]:
    """The servers of the manifest; empty where there is no manifest."""
    path = find_manifest()
    if path is None:
        logger.info("No %s in this folder or the one above: there are no MCP servers", MANIFEST_NAME)
        return []
    document = _read_manifest_file(path)
    if not isinstance(document, dict):
        if isinstance(document, list):
            logger.warning("%s holds a list: write {%r: […]}", MANIFEST_NAME, SERVERS_KEY)
            return []
        raise ManifestUnreadable(f'it must hold an object, {{"{SERVERS_KEY}": […]}}')
    servers = parse_servers(cast("object", document), environ, logger)
    if servers is None:
        logger.warning("%s has no list %r: there are no MCP servers", MANIFEST_NAME, SERVERS_KEY)
    return servers or []


def _read_manifest_file(path: Path) -> object:
    try:
        # Reading a pipe or a device might never end.
        if not path.is_file():
            raise ManifestUnreadable("it is no file")
        if path.stat().st_size > LARGEST_MANIFEST:
            raise ManifestUnreadable(f"it is larger than {LARGEST_MANIFEST // 1_000_000} MB")
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except RecursionError:
        raise ManifestUnreadable("it is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise ManifestUnreadable(str(error)) from error
