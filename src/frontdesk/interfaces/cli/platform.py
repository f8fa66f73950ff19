"""Implements `frontdesk platform lint` and `verify`: check a manifest, and compare it with its live servers."""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import anyio
from cyclopts import App as Command
from cyclopts import Parameter, validators

from frontdesk.agent365.environment import MANIFEST_NAME
from frontdesk.agent365.errors import ManifestUnreadable
from frontdesk.agent365.manifest.model import DeclaredManifest, DeclaredServer, ProblemLevel, did_you_mean
from frontdesk.agent365.manifest.reader import read_manifest
from frontdesk.agent365.servers import find_manifest
from frontdesk.agent365.verify import VERIFY_SECONDS, ServerVerification, ToolState, verify_servers
from frontdesk.errors import Invalid
from frontdesk.interfaces import logs
from frontdesk.interfaces.cli.output import Flag, JsonFlag, dump_json, printable_line
from frontdesk.settings import Settings
from frontdesk.text import list_first

MOST_NAMED = 20
Timeout = Annotated[float, Parameter(validator=validators.Number(gt=0, lte=3600))]


def lint(manifest: Path | None = None, /, *, strict: Flag = False, as_json: JsonFlag = False) -> None:
    """Show the problems of a manifest with their places; exit 1 if anything would not work, 2 if it cannot be read.

    Parameters
    ----------
    manifest
        The file; ToolingManifest.json in this folder or the one above when left out.
    strict
        Exit 1 for warnings too.
    as_json
        Print one JSON object.
    """
    declared = _read_declared(manifest)
    if as_json:
        print(dump_json(_lint_fields(declared)))
    else:
        for problem in declared.problems:
            print(printable_line(str(problem)))
        print(_lint_summary(declared))
    if not declared.is_valid or (strict and declared.problems):
        sys.exit(1)


def verify(
    manifest: Path | None = None,
    /,
    *,
    server: str | None = None,
    timeout: Timeout = VERIFY_SECONDS,
    as_json: JsonFlag = False,
) -> None:
    """Compare each tool of a manifest with its live server; exit 1 unless all exist as they are declared.

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
    logs.configure_logs(Settings.read().with_values(log_level="error"))
    declared = _read_declared(manifest)
    chosen = declared.servers if server is None else [_find_server(declared, server)]
    # Servers with errors are left out of the manifest and cannot be verified, unless another server was chosen.
    broken = server is None and not declared.is_valid
    found = anyio.run(verify_servers, chosen, os.environ, timeout)
    ok = not broken and all(one.ok for one in found)
    if as_json:
        servers = [asdict(one) | {"ok": one.ok} for one in found]
        print(
            dump_json(
                {"manifest": str(declared.path), "ok": ok, "manifest_sound": declared.is_valid, "servers": servers}
            )
        )
    else:
        for text in _describe_findings(found):
            print(text)
        print(_verify_outcome(found))
    if broken:
        print(f"frontdesk: The manifest has errors; run frontdesk platform lint {declared.path}", file=sys.stderr)
    if not ok:
        sys.exit(1)


def _read_declared(manifest: Path | None) -> DeclaredManifest:
    try:
        path = manifest or find_manifest()
        if path is None:
            raise Invalid(f"There is no {MANIFEST_NAME} in this folder or the one above; name the file")
        return read_manifest(path)
    except ManifestUnreadable as error:
        raise Invalid(str(error)) from error


def _find_server(declared: DeclaredManifest, name: str) -> DeclaredServer:
    found = [one for one in declared.servers if name in (one.name, one.unique_name)]
    if not found:
        names = [one.name for one in declared.servers]
        raise Invalid(f"The manifest declares no server '{name}'{did_you_mean(name, names)}")
    return next((one for one in found if one.name == name), found[0])


def _lint_fields(declared: DeclaredManifest) -> dict[str, object]:
    errors = _count_problems(declared, ProblemLevel.ERROR)
    return {
        "manifest": str(declared.path),
        "ok": declared.is_valid,
        "servers": len(declared.servers),
        "tools": _count_tools(declared),
        "errors": errors,
        "warnings": len(declared.problems) - errors,
        "problems": [asdict(problem) for problem in declared.problems],
    }


def _lint_summary(declared: DeclaredManifest) -> str:
    has = f"{_plural(len(declared.servers), 'server')} and {_plural(_count_tools(declared), 'tool')}"
    errors = _count_problems(declared, ProblemLevel.ERROR)
    if not declared.problems:
        return f"All is well: {has}."
    return f"{has}; {_plural(errors, 'error')}, {_plural(len(declared.problems) - errors, 'warning')}."


def _describe_findings(servers: Sequence[ServerVerification]) -> Iterator[str]:
    for one in servers:
        if one.failure is not None:
            yield printable_line(f"{one.server}: {one.failure}")
            continue
        there = len(one.tools_in_state(ToolState.FOUND)) + len(one.tools_in_state(ToolState.DRIFTED))
        asked = there + len(one.tools_in_state(ToolState.MISSING))
        yield printable_line(
            f"{one.server} at {one.url}: {f'{there} of {asked} declared tools found' if asked else 'answers'}"
        )
        for finding in one.findings:
            if finding.state in (ToolState.MISSING, ToolState.DRIFTED):
                yield f"  {printable_line(f'{finding.state}: {finding.tool}: {finding.what}').removesuffix(':')}"
        if (undeclared := one.tools_in_state(ToolState.UNDECLARED)) and asked:
            yield f"  {printable_line(f'not declared: {list_first(undeclared, MOST_NAMED)}')}"


def _verify_outcome(servers: Sequence[ServerVerification]) -> str:
    if not servers:
        return "The manifest declares no server."
    silent = sum(one.failure is not None for one in servers)
    counts = {state: sum(len(one.tools_in_state(state)) for one in servers) for state in ToolState}
    said = [f"{counts[state]} {state}" for state in (ToolState.FOUND, ToolState.MISSING, ToolState.DRIFTED)]
    return f"{_plural(len(servers), 'server')}, {silent} without an answer; tools: {', '.join(said)}."


def _count_problems(declared: DeclaredManifest, level: ProblemLevel) -> int:
    return sum(problem.level is level for problem in declared.problems)


def _count_tools(declared: DeclaredManifest) -> int:
    return sum(len(server.tools or ()) for server in declared.servers)


def _plural(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


LINT_HELP = "Show the problems of a ToolingManifest.json and the mocks beside it, with their places."
VERIFY_HELP = "Compare each tool that a ToolingManifest.json declares with the live server, and show the differences."

command = Command(name="platform")
# By name, because the server's imports take a while.
command.command(
    "frontdesk.interfaces.cli.platform_server:serve",
    name="serve",
    help="Serve a ToolingManifest.json as the platform would.",
)
command.command(lint, name="lint", help=LINT_HELP)
command.command(verify, name="verify", help=VERIFY_HELP)
