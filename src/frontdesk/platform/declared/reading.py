"""Reads a tooling manifest: its servers and their tools, and everything that is wrong with them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from frontdesk.platform.declared.entries import UNIQUE_NAME, Entry, entry
from frontdesk.platform.declared.fields import check_keys, fields, kind_of
from frontdesk.platform.declared.files import Unreadable, load
from frontdesk.platform.declared.mocks import check_orphans
from frontdesk.platform.declared.model import Declared
from frontdesk.platform.declared.notes import Notes
from frontdesk.platform.declared.saying import nearest, quoted
from frontdesk.platform.errors import ManifestUnreadable
from frontdesk.platform.tokens import own_variable

SERVERS = "mcpServers"


def read(path: Path) -> Declared:
    """What a manifest declares; raises `ManifestUnreadable` where it is none."""
    notes = Notes()
    try:
        document = load(path, notes)
    except Unreadable as error:
        raise ManifestUnreadable(f"{path}: {error}") from None
    listed = _servers(document, path)
    check_keys(fields(cast("dict[str, object]", document), ""), (SERVERS,), notes)
    folder = path.absolute().parent
    found = [entry(item, f"{SERVERS}[{number}]", folder, notes) for number, item in enumerate(listed)]
    kept = _told_apart([one for one in found if one is not None], notes)
    mocks = [one.mock for one in kept if one.mock is not None]
    check_orphans(folder, mocks, [one.server.name for one in kept], notes)
    files = tuple(dict.fromkeys((path, *mocks)))
    return Declared(path, tuple(one.server for one in kept), notes.problems, files)


def _servers(document: object, path: Path) -> Sequence[object]:
    if not isinstance(document, dict):
        raise ManifestUnreadable(f'{path}: it is {kind_of(document)}; write {{"{SERVERS}": […]}}')
    root = cast("Mapping[str, object]", document)
    if SERVERS not in root:
        near = nearest(SERVERS, root)
        hint = f"it has {quoted(near)} where it needs" if near else "it needs"
        raise ManifestUnreadable(f'{path}: {hint} {{"{SERVERS}": […]}}')
    listed = root[SERVERS]
    if isinstance(listed, list):
        return cast("list[object]", listed)
    kind = kind_of(listed)
    hint = ", as editors write it" if isinstance(listed, dict) else ""
    raise ManifestUnreadable(f"{path}: {SERVERS} is {kind}{hint}; make it a list of servers")


def _told_apart(found: Sequence[Entry], notes: Notes) -> Sequence[Entry]:
    """Without servers whose name is taken; those that only share a variable or an address are told."""
    names: dict[str, Entry] = {}
    variables: dict[str, Entry] = {}
    unique_names: dict[str, Entry] = {}
    for one in found:
        name, unique_name = one.server.name, one.server.unique_name
        if name in names:
            notes.error(one.where, f"{quoted(name)} is also {names[name].where}, which counts; name them apart")
            continue
        variable = own_variable(name)
        if variable in variables:
            other = variables[variable].where
            notes.warn(one.where, f"{quoted(name)} shares {variable} with {other}, and so its token; name them apart")
        if unique_name in unique_names:
            other = unique_names[unique_name].where
            notes.warn(one.where, f"{UNIQUE_NAME} {quoted(unique_name)} is also that of {other}; name them apart")
        names[name] = variables[variable] = unique_names[unique_name] = one
    return tuple(names.values())
