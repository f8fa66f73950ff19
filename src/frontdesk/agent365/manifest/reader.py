"""Reads a manifest with its mock files: servers, names, addresses, audiences, scopes."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import cast
from urllib.parse import SplitResult, quote, urlsplit

from frontdesk.agent365.errors import ManifestUnreadable
from frontdesk.agent365.headers import token_variable_of
from frontdesk.agent365.manifest.json_fields import (
    JsonFields,
    UnreadableFile,
    describe_type,
    load_json_file,
    read_fields,
    warn_of_unknown_keys,
)
from frontdesk.agent365.manifest.model import (
    DeclaredManifest,
    DeclaredServer,
    DeclaredTool,
    ProblemLevel,
    ProblemList,
    nearest_name,
    quote_name,
)
from frontdesk.agent365.manifest.tools import RawTool, read_raw_tools, read_tools

VISIBLE_ASCII = re.compile(r"[\x21-\x7e]+")
GUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
APP_URI = re.compile(r"api://[^\s/].*", re.IGNORECASE)
# The words for the audience that all servers share and for no value.
DEFAULT_AUDIENCE = "default"
NO_SCOPE = "null"


def address_problem(url: str) -> str | None:
    """Why no request can be sent to an address; None if it is valid."""
    parts = _split_url(url)
    if parts is None or not parts.hostname or parts.scheme not in ("http", "https"):
        return "is no address; write https://host/path, and encode what is not ASCII"
    if "@" in parts.netloc:
        return "holds a login, which would be sent in place of the token; write it without"
    return None


def sends_token_in_clear(url: str) -> bool:
    """Whether a token sent to this address can be read on the way: plain HTTP to another machine."""
    parts = _split_url(url)
    return parts is not None and parts.scheme == "http" and not _is_loopback(parts.hostname or "")


def audience_problem(audience: str) -> str | None:
    said = audience.strip()
    if GUID.fullmatch(said) or APP_URI.fullmatch(said) or said.lower() == DEFAULT_AUDIENCE:
        return None
    return f"{quote_name(audience)} is no application that gives tokens; write its GUID, api://… or {DEFAULT_AUDIENCE}"


def scope_problem(scope: str, audience: str | None) -> str | None:
    if audience is None:
        return "is not used without an audience: the server gets the token that all share; name its audience too"
    if len(scope.split()) > 1:
        return "names more than one scope, and none of them will be granted so; keep one"
    return None


def _split_url(url: str) -> SplitResult | None:
    # Python's own reader drops new lines silently, and characters that are not ASCII must be encoded.
    if not VISIBLE_ASCII.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
VARIABLE_NAME = re.compile(r"[A-Za-z0-9_]+")
LONGEST_NAME = 256


def is_usable_name(name: str, where: str, notes: ProblemList) -> bool:
    """Whether a server can have this name at all."""
    if not name.strip():
        notes.error(where, "is blank; give the server a name")
    elif CONTROL_CHARACTER.search(name):
        notes.error(where, "holds a control character or a new line, which no address can; write it without")
    elif not name.strip(" ."):
        notes.error(where, f"is {quote_name(name)}, and only dots lead elsewhere in an address; give it a name")
    elif len(name) > LONGEST_NAME:
        notes.error(where, f"is longer than {LONGEST_NAME} characters; shorten it")
    else:
        return True
    return False


def check_name(name: str, where: str, notes: ProblemList) -> None:
    """Warn of a usable name that other programs have trouble with."""
    if quote(name, safe="") != name or ".." in name:
        notes.warn(
            where,
            f"{quote_name(name)} must be encoded in an address; Microsoft's SDK does not, and asks elsewhere: "
            "keep to letters, digits, - and _",
        )
    if not VARIABLE_NAME.fullmatch(name) or not name.isascii():
        notes.warn(
            where,
            f"no shell can set {token_variable_of(name)}, which holds its token in development; "
            "keep to letters, digits and _",
        )


MOCK_FOLDER = "mocks"
MOCK_SUFFIX = ".json"
MOST_MOCK_FILES = 10_000


@dataclass(frozen=True, slots=True)
class MockFile:
    """A mock file that was found, and its tools."""

    path: Path
    tools: Mapping[str, RawTool]


def read_named_mock(folder: Path, name: str, where: str, notes: ProblemList) -> MockFile | None:
    """The file that a server's entry names; it must lie in the manifest's folder."""
    path = _resolve_inside(folder, name)
    if path is None:
        notes.error(where, f"{quote_name(name)} is not inside the manifest's folder; move it there")
        return None
    if not _is_file(path):
        notes.error(where, f"there is no file {quote_name(name)} beside the manifest; make it, or leave this out")
        return None
    return _read_mock(path, name, notes)


def read_default_mock(folder: Path, server: str, notes: ProblemList) -> MockFile | None:
    """Read `mocks/<server>.json`, where it exists."""
    name = f"{MOCK_FOLDER}/{server}{MOCK_SUFFIX}"
    if "/" in server or "\\" in server or not _is_file(folder / name):
        return None
    path = _resolve_inside(folder, name)
    if path is None:
        notes.error(name, "leads out of the manifest's folder, and is not read; put the file itself there")
        return None
    return _read_mock(path, name, notes)


def warn_of_unused_mocks(folder: Path, read: Collection[Path], servers: Collection[str], notes: ProblemList) -> None:
    """Warn of files among the mocks that belong to no server."""
    try:
        found = sorted(path for path, _ in zip((folder / MOCK_FOLDER).iterdir(), range(MOST_MOCK_FILES), strict=False))
    except OSError:
        return
    for path in found:
        if path.suffix.lower() == MOCK_SUFFIX and path.resolve() not in read:
            name = path.stem.encode(errors="replace").decode()
            known = notes.did_you_mean(name, servers) or "; name it after its server"
            notes.warn(f"{MOCK_FOLDER}/{name}{MOCK_SUFFIX}", f"belongs to no server of the manifest{known}")


def _read_mock(path: Path, name: str, notes: ProblemList) -> MockFile:
    try:
        found = load_json_file(path, notes, f"{name}: ")
    except UnreadableFile as error:
        notes.error(name, str(error))
        return MockFile(path, {})
    key, listed = _find_tool_list(found)
    if not isinstance(listed, list):
        notes.error(name, f'must be a list of tools, or {{"tools": […]}}, not {describe_type(listed)}')
        return MockFile(path, {})
    return MockFile(path, read_raw_tools(cast("list[object]", listed), f"{name}: {key}", notes))


def _find_tool_list(found: object) -> tuple[str, object]:
    """(key, tools) in either form; a file that is a plain list has no key."""
    if not isinstance(found, dict):
        return "", found
    document = cast("dict[str, object]", found)
    return next(((key, value) for key, value in document.items() if key.lower() == "tools"), ("", document))


def _resolve_inside(folder: Path, name: str) -> Path | None:
    try:
        home = folder.resolve()
        path = (home / name.replace("\\", "/")).resolve()
    except (OSError, ValueError, RuntimeError):
        return None
    return path if path.is_relative_to(home) and path != home else None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


NAME_KEY = "mcpServerName"
UNIQUE_NAME_KEY = "mcpServerUniqueName"
LINK_KEYS = ("allConnectionsUrl", "missingConnectionsUrl")
STATUS_KEY = "connectivityStatus"
CONNECTIVITY_STATUSES = ("Ready", "Pending")
# The keys that discovery returns; the other keys say how the local platform answers.
DISCOVERY_KEYS = (NAME_KEY, UNIQUE_NAME_KEY, "url", "audience", "scope", "publisher", "id", *LINK_KEYS, STATUS_KEY)
LOCAL_KEYS = ("tools", "mockFile")


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """A server that was read, its place, and its mock file."""

    where: str
    server: DeclaredServer
    mock: Path | None


def read_entry(value: object, where: str, folder: Path, notes: ProblemList) -> ServerEntry | None:
    """The server of an entry, or None where the entry is not valid."""
    if not isinstance(value, dict):
        notes.error(where, f"must be an object with {NAME_KEY}, not {describe_type(value)}, and is left out")
        return None
    raw = cast("dict[str, object]", value)
    found = read_fields(raw, where)
    warn_of_unknown_keys(found, (*DISCOVERY_KEYS, *LOCAL_KEYS), notes)
    names = _read_names(found, notes)
    if names is None:
        return None
    name, unique_name = names
    url, audience = _read_url(found, notes), _read_audience(found, notes)
    scope = _read_scope(found, audience, notes)
    for key in ("publisher", "id"):
        found.text(key, notes, ProblemLevel.WARNING)
    _check_connections(found, notes)
    mock = _find_mock(found, name, folder, notes)
    given = {
        key: item
        for key, item in raw.items()
        if key not in LOCAL_KEYS and (key not in DISCOVERY_KEYS or _is_valid_for_discovery(key, item))
    }
    server = DeclaredServer(name, unique_name, given, url, audience, scope, _read_server_tools(found, mock, notes))
    return ServerEntry(where, server, mock.path if mock else None)


def _read_names(fields: JsonFields, notes: ProblemList) -> tuple[str, str] | None:
    name, unique_name = fields.text(NAME_KEY, notes), fields.text(UNIQUE_NAME_KEY, notes)
    if name is None and unique_name is None:
        notes.error(fields.place_of(NAME_KEY), "is missing, and the server is left out; name the server")
        return None
    if name is not None and unique_name is not None and not unique_name.strip():
        notes.warn(fields.place_of(UNIQUE_NAME_KEY), f"is blank, and {NAME_KEY} stands in for it; leave it out")
        unique_name = None
    if name is None:
        notes.warn(
            fields.where,
            f"has only {UNIQUE_NAME_KEY}; Microsoft's Python SDK 2.0.0 drops such a server: add {NAME_KEY}",
        )
    given = [(key, one) for key, one in ((NAME_KEY, name), (UNIQUE_NAME_KEY, unique_name)) if one is not None]
    if False in [is_usable_name(one, fields.place_of(key), notes) for key, one in given]:
        return None
    key, chosen = given[0]
    check_name(chosen, fields.place_of(key), notes)
    if chosen != chosen.strip():
        notes.warn(fields.place_of(key), f"{quote_name(chosen)} begins or ends with a blank; write it without")
    return chosen, unique_name or chosen


def _read_url(fields: JsonFields, notes: ProblemList) -> str | None:
    url = fields.text("url", notes)
    if not url:
        return None
    wrong = address_problem(url)
    if wrong is not None:
        notes.error(fields.place_of("url"), wrong)
        return None
    if sends_token_in_clear(url):
        notes.warn(fields.place_of("url"), "sends the token over plain HTTP to another machine; use https")
    return url


def _read_audience(fields: JsonFields, notes: ProblemList) -> str | None:
    audience = (fields.text("audience", notes) or "").strip()
    wrong = audience_problem(audience) if audience else None
    if wrong is not None:
        notes.warn(fields.place_of("audience"), wrong)
    return None if audience.lower() in ("", DEFAULT_AUDIENCE) else audience


def _read_scope(fields: JsonFields, audience: str | None, notes: ProblemList) -> str | None:
    scope = (fields.text("scope", notes) or "").strip()
    if scope.lower() in ("", NO_SCOPE):
        return None
    wrong = scope_problem(scope, audience)
    if wrong is not None:
        notes.warn(fields.place_of("scope"), wrong)
    return scope


def _check_connections(fields: JsonFields, notes: ProblemList) -> None:
    for key in LINK_KEYS:
        link = fields.text(key, notes)
        if link and address_problem(link) is not None:
            notes.warn(fields.place_of(key), "is no address that anybody could open; write https://host/path")
    status = fields.text(STATUS_KEY, notes)
    if status is not None and status not in CONNECTIVITY_STATUSES:
        known = notes.did_you_mean(status, CONNECTIVITY_STATUSES) or f"; write {' or '.join(CONNECTIVITY_STATUSES)}"
        notes.warn(fields.place_of(STATUS_KEY), f"{quote_name(status)} is no state of a connection{known}")
    elif status == CONNECTIVITY_STATUSES[1] and not fields.get(LINK_KEYS[1]):
        notes.warn(fields.place_of(STATUS_KEY), f"is {status}, and nothing says where to connect; add {LINK_KEYS[1]}")


def _find_mock(fields: JsonFields, name: str, folder: Path, notes: ProblemList) -> MockFile | None:
    named = fields.text("mockFile", notes)
    if named is not None:
        return read_named_mock(folder, named, fields.place_of("mockFile"), notes)
    return read_default_mock(folder, name, notes)


def _read_server_tools(fields: JsonFields, mock: MockFile | None, notes: ProblemList) -> Sequence[DeclaredTool] | None:
    listed = fields.items("tools", notes)
    if listed is None and mock is None:
        return None
    declared = read_raw_tools(listed or (), fields.place_of("tools"), notes)
    return read_tools(declared, mock.tools if mock else {}, notes)


def _is_valid_for_discovery(key: str, value: object) -> bool:
    """Whether discovery can return this value: a text, and a valid address where it is one."""
    if value is None:
        return True
    if not isinstance(value, str):
        return False
    return not value or key not in ("url", *LINK_KEYS) or address_problem(value) is None


SERVERS_KEY = "mcpServers"


def read_manifest(path: Path) -> DeclaredManifest:
    """Read a manifest; raises `ManifestUnreadable` where it is none."""
    notes = ProblemList()
    try:
        document = load_json_file(path, notes)
    except UnreadableFile as error:
        raise ManifestUnreadable(f"{path}: {error}") from None
    listed = _read_servers(document, path)
    warn_of_unknown_keys(read_fields(cast("dict[str, object]", document), ""), (SERVERS_KEY,), notes)
    folder = path.absolute().parent
    found = [read_entry(item, f"{SERVERS_KEY}[{number}]", folder, notes) for number, item in enumerate(listed)]
    kept = _without_duplicates([one for one in found if one is not None], notes)
    mocks = [one.mock for one in kept if one.mock is not None]
    warn_of_unused_mocks(folder, mocks, [one.server.name for one in kept], notes)
    files = tuple(dict.fromkeys((path, *mocks)))
    return DeclaredManifest(path, tuple(one.server for one in kept), notes.problems, files)


def _read_servers(document: object, path: Path) -> Sequence[object]:
    if not isinstance(document, dict):
        raise ManifestUnreadable(f'{path}: it is {describe_type(document)}; write {{"{SERVERS_KEY}": […]}}')
    root = cast("Mapping[str, object]", document)
    if SERVERS_KEY not in root:
        near = nearest_name(SERVERS_KEY, root)
        hint = f"it has {quote_name(near)} where it needs" if near else "it needs"
        raise ManifestUnreadable(f'{path}: {hint} {{"{SERVERS_KEY}": […]}}')
    listed = root[SERVERS_KEY]
    if isinstance(listed, list):
        return cast("list[object]", listed)
    kind = describe_type(listed)
    hint = ", as editors write it" if isinstance(listed, dict) else ""
    raise ManifestUnreadable(f"{path}: {SERVERS_KEY} is {kind}{hint}; make it a list of servers")


def _without_duplicates(found: Sequence[ServerEntry], notes: ProblemList) -> Sequence[ServerEntry]:
    """The servers without those whose name is taken; servers that only share a variable or an address get a note."""
    names: dict[str, ServerEntry] = {}
    variables: dict[str, ServerEntry] = {}
    unique_names: dict[str, ServerEntry] = {}
    for one in found:
        name, unique_name = one.server.name, one.server.unique_name
        if name in names:
            notes.error(one.where, f"{quote_name(name)} is also {names[name].where}, which counts; name them apart")
            continue
        variable = token_variable_of(name)
        if variable in variables:
            other = variables[variable].where
            notes.warn(
                one.where, f"{quote_name(name)} shares {variable} with {other}, and so its token; name them apart"
            )
        if unique_name in unique_names:
            other = unique_names[unique_name].where
            notes.warn(
                one.where, f"{UNIQUE_NAME_KEY} {quote_name(unique_name)} is also that of {other}; name them apart"
            )
        names[name] = variables[variable] = unique_names[unique_name] = one
    return tuple(names.values())
