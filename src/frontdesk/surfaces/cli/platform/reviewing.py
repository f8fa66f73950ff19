"""`frontdesk platform lint` and `verify`: whether a manifest makes sense, and whether its servers agree."""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import anyio
from cyclopts import Parameter, validators

from frontdesk.errors import Invalid
from frontdesk.loop.text import some_of
from frontdesk.platform.constants import MANIFEST_NAME
from frontdesk.platform.declared.model import Declared, DeclaredServer, Level
from frontdesk.platform.declared.reading import read
from frontdesk.platform.declared.saying import meant
from frontdesk.platform.errors import ManifestUnreadable
from frontdesk.platform.manifest import find_manifest
from frontdesk.platform.verifying.asking import SECONDS
from frontdesk.platform.verifying.asking import verify as verified
from frontdesk.platform.verifying.model import State, Verified
from frontdesk.settings import Settings
from frontdesk.surfaces import logs
from frontdesk.surfaces.cli.options import Flag, Json
from frontdesk.surfaces.cli.plain import line
from frontdesk.surfaces.cli.words import dumped

NAMED = 20
Timeout = Annotated[float, Parameter(validator=validators.Number(gt=0, lte=3600))]


def lint(manifest: Path | None = None, /, *, strict: Flag = False, as_json: Json = False) -> None:
    """Say what is wrong with a manifest, and where; exit 1 if anything would not work, 2 if it cannot be read.

    Parameters
    ----------
    manifest
        The file; ToolingManifest.json in this folder or the one above when left out.
    strict
        Exit 1 for warnings too.
    as_json
        Print one JSON object.
    """
    declared = _read(manifest)
    if as_json:
        print(dumped(_linted(declared)))
    else:
        for problem in declared.problems:
            print(line(str(problem)))
        print(_summary(declared))
    if not declared.sound or (strict and declared.problems):
        sys.exit(1)


def verify(
    manifest: Path | None = None,
    /,
    *,
    server: str | None = None,
    timeout: Timeout = SECONDS,
    as_json: Json = False,
) -> None:
    """Look for each tool of a manifest on its live server; exit 1 unless all are there as they are declared.

    Tokens come from BEARER_TOKEN_<NAME> of each server, or BEARER_TOKEN.

    Parameters
    ----------
    manifest
        The file; ToolingManifest.json in this folder or the one above when left out.
    server
        Ask only this one.
    timeout
        Seconds that each server has to list its tools.
    as_json
        Print one JSON object.
    """
    logs.configure(Settings.read().replaced(log_level="error"))
    declared = _read(manifest)
    chosen = declared.servers if server is None else [_named(declared, server)]
    # One that was left out cannot be looked for; whoever asks for another does not mind.
    broken = server is None and not declared.sound
    found = anyio.run(verified, chosen, os.environ, timeout)
    ok = not broken and all(one.ok for one in found)
    if as_json:
        servers = [asdict(one) | {"ok": one.ok} for one in found]
        print(dumped({"manifest": str(declared.path), "ok": ok, "manifest_sound": declared.sound, "servers": servers}))
    else:
        for text in _told(found):
            print(text)
        print(_outcome(found))
    if broken:
        print(f"frontdesk: The manifest has errors; run frontdesk platform lint {declared.path}", file=sys.stderr)
    if not ok:
        sys.exit(1)


def _read(manifest: Path | None) -> Declared:
    try:
        path = manifest or find_manifest()
        if path is None:
            raise Invalid(f"There is no {MANIFEST_NAME} in this folder or the one above; name the file")
        return read(path)
    except ManifestUnreadable as error:
        raise Invalid(str(error)) from error


def _named(declared: Declared, name: str) -> DeclaredServer:
    found = [one for one in declared.servers if name in (one.name, one.unique_name)]
    if not found:
        names = [one.name for one in declared.servers]
        raise Invalid(f"The manifest declares no server '{name}'{meant(name, names)}")
    return next((one for one in found if one.name == name), found[0])


def _linted(declared: Declared) -> dict[str, object]:
    errors = _count(declared, Level.ERROR)
    return {
        "manifest": str(declared.path),
        "ok": declared.sound,
        "servers": len(declared.servers),
        "tools": _tools(declared),
        "errors": errors,
        "warnings": len(declared.problems) - errors,
        "problems": [asdict(problem) for problem in declared.problems],
    }


def _summary(declared: Declared) -> str:
    has = f"{_many(len(declared.servers), 'server')} and {_many(_tools(declared), 'tool')}"
    errors = _count(declared, Level.ERROR)
    if not declared.problems:
        return f"All is well: {has}."
    return f"{has}; {_many(errors, 'error')}, {_many(len(declared.problems) - errors, 'warning')}."


def _told(found: Sequence[Verified]) -> Iterator[str]:
    for one in found:
        if one.failure is not None:
            yield line(f"{one.server}: {one.failure}")
            continue
        there = len(one.named(State.FOUND)) + len(one.named(State.DRIFTED))
        asked = there + len(one.named(State.MISSING))
        yield line(f"{one.server} at {one.url}: {f'{there} of {asked} declared tools found' if asked else 'answers'}")
        for finding in one.findings:
            if finding.state in (State.MISSING, State.DRIFTED):
                yield f"  {line(f'{finding.state}: {finding.tool}: {finding.what}').removesuffix(':')}"
        if (undeclared := one.named(State.UNDECLARED)) and asked:
            yield f"  {line(f'not declared: {some_of(undeclared, NAMED)}')}"


def _outcome(found: Sequence[Verified]) -> str:
    if not found:
        return "The manifest declares no server."
    silent = sum(one.failure is not None for one in found)
    counts = {state: sum(len(one.named(state)) for one in found) for state in State}
    said = [f"{counts[state]} {state}" for state in (State.FOUND, State.MISSING, State.DRIFTED)]
    return f"{_many(len(found), 'server')}, {silent} without an answer; tools: {', '.join(said)}."


def _count(declared: Declared, level: Level) -> int:
    return sum(problem.level is level for problem in declared.problems)


def _tools(declared: Declared) -> int:
    return sum(len(server.tools or ()) for server in declared.servers)


def _many(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
