"""One server of a manifest: what its entry says, and what is wrong with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from frontdesk.platform.declared.addresses import (
    DEFAULT_AUDIENCE,
    NO_SCOPE,
    fault_of_address,
    fault_of_audience,
    fault_of_scope,
    is_in_the_open,
)
from frontdesk.platform.declared.fields import Fields, check_keys, fields, kind_of
from frontdesk.platform.declared.mocks import Mock, named_mock, usual_mock
from frontdesk.platform.declared.model import DeclaredServer, DeclaredTool, Level
from frontdesk.platform.declared.names import check_name, is_usable
from frontdesk.platform.declared.notes import Notes
from frontdesk.platform.declared.saying import quoted
from frontdesk.platform.declared.tools import raw_tools, tools

NAME = "mcpServerName"
UNIQUE_NAME = "mcpServerUniqueName"
LINKS = ("allConnectionsUrl", "missingConnectionsUrl")
STATUS = "connectivityStatus"
STATUSES = ("Ready", "Pending")
# Given out by discovery; the rest says how a stand-in answers.
GIVEN_OUT = (NAME, UNIQUE_NAME, "url", "audience", "scope", "publisher", "id", *LINKS, STATUS)
OURS = ("tools", "mockFile")


@dataclass(frozen=True, slots=True)
class Entry:
    """A server that was read, where it stands, and the mock file that speaks for it."""

    where: str
    server: DeclaredServer
    mock: Path | None


def entry(value: object, where: str, folder: Path, notes: Notes) -> Entry | None:
    """What an entry declares, or None where it is no server."""
    if not isinstance(value, dict):
        notes.error(where, f"must be an object with {NAME}, not {kind_of(value)}, and is left out")
        return None
    raw = cast("dict[str, object]", value)
    found = fields(raw, where)
    check_keys(found, (*GIVEN_OUT, *OURS), notes)
    names = _names(found, notes)
    if names is None:
        return None
    name, unique_name = names
    url, audience = _url(found, notes), _audience(found, notes)
    scope = _scope(found, audience, notes)
    for key in ("publisher", "id"):
        found.text(key, notes, Level.WARNING)
    _check_connections(found, notes)
    mock = _mock(found, name, folder, notes)
    given = {
        key: item for key, item in raw.items() if key not in OURS and (key not in GIVEN_OUT or _is_kept(key, item))
    }
    server = DeclaredServer(name, unique_name, given, url, audience, scope, _tools(found, mock, notes))
    return Entry(where, server, mock.path if mock else None)


def _names(found: Fields, notes: Notes) -> tuple[str, str] | None:
    name, unique_name = found.text(NAME, notes), found.text(UNIQUE_NAME, notes)
    if name is None and unique_name is None:
        notes.error(found.at(NAME), "is missing, and the server is left out; name the server")
        return None
    if name is not None and unique_name is not None and not unique_name.strip():
        notes.warn(found.at(UNIQUE_NAME), f"is blank, and {NAME} stands in for it; leave it out")
        unique_name = None
    if name is None:
        notes.warn(
            found.where,
            f"has only {UNIQUE_NAME}; Microsoft's Python SDK 2.0.0 drops such a server: add {NAME}",
        )
    given = [(key, one) for key, one in ((NAME, name), (UNIQUE_NAME, unique_name)) if one is not None]
    if False in [is_usable(one, found.at(key), notes) for key, one in given]:
        return None
    key, chosen = given[0]
    check_name(chosen, found.at(key), notes)
    if chosen != chosen.strip():
        notes.warn(found.at(key), f"{quoted(chosen)} begins or ends with a blank; write it without")
    return chosen, unique_name or chosen


def _url(found: Fields, notes: Notes) -> str | None:
    url = found.text("url", notes)
    if not url:
        return None
    wrong = fault_of_address(url)
    if wrong is not None:
        notes.error(found.at("url"), wrong)
        return None
    if is_in_the_open(url):
        notes.warn(found.at("url"), "sends the token over plain HTTP to another machine; use https")
    return url


def _audience(found: Fields, notes: Notes) -> str | None:
    audience = (found.text("audience", notes) or "").strip()
    wrong = fault_of_audience(audience) if audience else None
    if wrong is not None:
        notes.warn(found.at("audience"), wrong)
    return None if audience.lower() in ("", DEFAULT_AUDIENCE) else audience


def _scope(found: Fields, audience: str | None, notes: Notes) -> str | None:
    scope = (found.text("scope", notes) or "").strip()
    if scope.lower() in ("", NO_SCOPE):
        return None
    wrong = fault_of_scope(scope, audience)
    if wrong is not None:
        notes.warn(found.at("scope"), wrong)
    return scope


def _check_connections(found: Fields, notes: Notes) -> None:
    for key in LINKS:
        link = found.text(key, notes)
        if link and fault_of_address(link) is not None:
            notes.warn(found.at(key), "is no address that anybody could open; write https://host/path")
    status = found.text(STATUS, notes)
    if status is not None and status not in STATUSES:
        known = notes.meant(status, STATUSES) or f"; write {' or '.join(STATUSES)}"
        notes.warn(found.at(STATUS), f"{quoted(status)} is no state of a connection{known}")
    elif status == STATUSES[1] and not found.get(LINKS[1]):
        notes.warn(found.at(STATUS), f"is {status}, and nothing says where to connect; add {LINKS[1]}")


def _mock(found: Fields, name: str, folder: Path, notes: Notes) -> Mock | None:
    named = found.text("mockFile", notes)
    if named is not None:
        return named_mock(folder, named, found.at("mockFile"), notes)
    return usual_mock(folder, name, notes)


def _tools(found: Fields, mock: Mock | None, notes: Notes) -> Sequence[DeclaredTool] | None:
    listed = found.items("tools", notes)
    if listed is None and mock is None:
        return None
    declared = raw_tools(listed or (), found.at("tools"), notes)
    return tools(declared, mock.tools if mock else {}, notes)


def _is_kept(key: str, value: object) -> bool:
    """Whether discovery can give this out: a text, and an address where it stands for one."""
    if value is None:
        return True
    if not isinstance(value, str):
        return False
    return not value or key not in ("url", *LINKS) or fault_of_address(value) is None
