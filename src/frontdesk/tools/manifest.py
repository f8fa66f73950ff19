"""Reads manifest files of editors and of Agent 365 into server specifications."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, field_validator

from frontdesk.errors import ConfigurationError, Invalid
from frontdesk.mcp_client.model import CALL_SECONDS, RemoteTool
from frontdesk.tools.servers import AGENT365_SERVERS, ServerOrigin, ServerSpec, Transport, server_name

LARGEST_MANIFEST = 50_000_000
# The key in files of Claude, Cursor and Agent 365, then the key in files of VS Code.
SERVERS_KEYS = ("mcpServers", "servers")
TRANSPORT_NAMES: Mapping[str, Transport] = {
    "http": Transport.HTTP,
    "streamablehttp": Transport.HTTP,
    "sse": Transport.SSE,
    "stdio": Transport.STDIO,
    "local": Transport.STDIO,
}


class ManifestTool(BaseModel):
    """A tool that the manifest itself describes."""

    model_config = ConfigDict(frozen=True)

    name: str
    description: str = ""
    input_schema: dict[str, Any] = Field(
        default_factory=dict[str, Any], validation_alias=AliasChoices("inputSchema", "input_schema", "parameters")
    )
    annotations: dict[str, Any] = Field(default_factory=dict[str, Any])


class ManifestServer(BaseModel):
    """The fields of a server that the common formats share; other fields are ignored."""

    model_config = ConfigDict(frozen=True)

    url: str = Field("", validation_alias=AliasChoices("url", "serverUrl", "httpUrl"))
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict[str, str])
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    kind: str = Field("", validation_alias=AliasChoices("type", "transport"))
    description: str = ""
    disabled: bool = False
    user_token: bool = False
    hold_changes: bool | None = None
    timeout: float = Field(CALL_SECONDS, gt=0, le=3600)
    oauth: dict[str, Any] = Field(default_factory=dict[str, Any])
    tools: tuple[ManifestTool, ...] | None = None

    @field_validator("env", "headers", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        found = cast("dict[object, object]", value)
        return {name: str(one) if isinstance(one, (int, float)) else one for name, one in found.items()}

    @field_validator("tools", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        # Some formats list only names here, which select from the server's tools.
        listed = cast("list[object]", value) if isinstance(value, list) else [value]
        return None if all(isinstance(one, str) for one in listed) else cast("object", value)


def read_manifest(path: Path) -> Sequence[ServerSpec]:
    """The servers of a manifest; every error names its place in the file."""
    try:
        if path.stat().st_size > LARGEST_MANIFEST:
            raise ConfigurationError(f"The tools manifest {path} is larger than {LARGEST_MANIFEST // 1_000_000} MB")
        found: object = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigurationError(f"The tools manifest {path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"The tools manifest {path} is not valid JSON: {error}") from error
    return parse_manifest(found, str(path))


def parse_manifest(document: object, where: str) -> Sequence[ServerSpec]:
    """The servers of a manifest that was read from `where`."""
    root = _as_object(document)
    key = next((key for key in SERVERS_KEYS if key in root), None)
    if key is None:
        raise ConfigurationError(f'{where} is no tools manifest: it needs {{"mcpServers": …}} at its top')
    specs: dict[str, ServerSpec] = {}
    platform = key == SERVERS_KEYS[0] and isinstance(root[key], list)
    for place, name, entry in _server_entries(root[key], f"{where}: {key}"):
        spec = _parse_server(place, name, entry, platform=platform)
        if spec is not None and spec.name in specs:
            raise ConfigurationError(f"{place}: another server is already called '{spec.name}'; name them apart")
        if spec is not None:
            specs[spec.name] = spec
    return tuple(specs.values())


def _server_entries(servers: object, where: str) -> Iterator[tuple[str, str, object]]:
    """(place, name, entry) of each server, from either format."""
    if isinstance(servers, dict):
        for name, entry in cast("Mapping[str, object]", servers).items():
            yield f"{where}.{name}", name, entry
    elif isinstance(servers, list):
        for number, entry in enumerate(cast("list[object]", servers)):
            said = _as_object(entry)
            name = said.get("mcpServerName") or said.get("name") or said.get("mcpServerUniqueName")
            if not isinstance(name, str):
                raise ConfigurationError(f"{where}[{number}] needs mcpServerName")
            yield f"{where}[{number}] ({name})", name, entry
    else:
        raise ConfigurationError(f"{where} must be an object or a list of servers")


def _parse_server(place: str, name: str, entry: object, *, platform: bool) -> ServerSpec | None:
    try:
        said = ManifestServer.model_validate(entry)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        at = ".".join(str(part) for part in problem["loc"])
        raise ConfigurationError(f"{place}{'.' if at else ''}{at}: {problem['msg']}") from None
    try:
        return None if said.disabled else _make_spec(name, said, _transport(said, place), platform=platform)
    except Invalid as error:
        raise ConfigurationError(f"{place}: {error}") from None


def _transport(said: ManifestServer, place: str) -> Transport:
    if not said.kind:
        return Transport.STDIO if said.command and not said.url else Transport.HTTP
    found = TRANSPORT_NAMES.get(re.sub(r"[-_]", "", said.kind.lower()))
    if found is None:
        raise ConfigurationError(f"{place}.type: {said.kind[:40]!r} is none of http, sse and stdio")
    return found


def _make_spec(name: str, said: ManifestServer, transport: Transport, *, platform: bool) -> ServerSpec:
    nowhere = transport is not Transport.STDIO and not said.url and not said.command
    if nowhere and not platform:
        raise Invalid(f"'{name}' has neither url nor command")
    # An Agent 365 entry without an address is on Microsoft's platform; credentials for other servers must not go there.
    at_platform = nowhere and transport is Transport.HTTP
    tools = None if said.tools is None else tuple(_make_tool(tool) for tool in said.tools)
    return ServerSpec(
        server_name(name),
        transport,
        AGENT365_SERVERS + quote(name, safe="", errors="replace") if at_platform else said.url,
        said.command,
        said.args,
        said.env,
        said.headers,
        said.user_token,
        said.oauth,
        said.description,
        ServerOrigin.MANIFEST,
        said.hold_changes,
        said.timeout,
        tools,
    )


def _as_object(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _make_tool(said: ManifestTool) -> RemoteTool:
    return RemoteTool(said.name, said.description, said.input_schema or {"type": "object"}, said.annotations)
