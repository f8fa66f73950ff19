"""Implements the commands of `frontdesk tools` for servers and access rules, and opens the catalogue for all of them.

Only errors are logged: the commands themselves report servers that do not answer.
"""

import re
import shutil
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from types import TracebackType
from typing import Annotated, Self, TextIO, TypeVar

import anyio
from cyclopts import App as Command
from cyclopts import Parameter

from frontdesk.app import App
from frontdesk.errors import FrontdeskError, Invalid, NotFound
from frontdesk.interfaces.app_runner import AppFunction, local_caller, record_change, run_change, run_with_app
from frontdesk.interfaces.cli.output import Flag, Repeated, Text, format_table, print_list, printable_line
from frontdesk.journal.service import CallRecord
from frontdesk.text import list_first, not_found_message
from frontdesk.tools.access import AccessEffect, AccessRule
from frontdesk.tools.crawler import CrawlStage, CrawlStep
from frontdesk.tools.learning import tenant_of
from frontdesk.tools.manifest import read_manifest
from frontdesk.tools.model import ID_SEPARATOR
from frontdesk.tools.servers import ServerOrigin, ServerSpec, ServerState, ServerStatus, Transport

ERASE_LINE = "\r\x1b[K"
MOST_NAMED = 3
REVIEW_COMMAND = "frontdesk tools review"
# A crawl's summary of changed tools: `2 taken (a, b)`.
CHANGE_PATTERN = re.compile(r"(?:(?<=; )|^)(\d+) (taken|held) \((.*?)\)(?=; |$)")


class ProgressLine:
    """Shows progress: `update` on one changing line of a terminal, `log` as lines for other readers."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live = out.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live:
            print(ERASE_LINE, end="", file=self._out, flush=True)

    def update(self, text: str) -> None:
        if self._live:
            shown = printable_line(text, shutil.get_terminal_size().columns - 1)
            print(f"{ERASE_LINE}{shown}", end="", file=self._out, flush=True)

    def log(self, text: str) -> None:
        if not self._live:
            print(printable_line(text), file=self._out, flush=True)


class CrawlProgress:
    """Shows the progress of a crawl: how many servers are done, and which are being asked."""

    def __init__(self, told: ProgressLine, total: int) -> None:
        self._told = told
        self._total = total
        self._over = 0
        self._asked: list[str] = []

    def step(self, step: CrawlStep) -> None:
        if step.stage is CrawlStage.STARTED:
            self._asked.append(step.server)
        else:
            self._over += 1
            if step.server in self._asked:
                self._asked.remove(step.server)
        waiting = list_first(self._asked, MOST_NAMED)
        self._told.update(
            f"asked {self._over} of {self._total} servers" + (f"; waiting for {waiting}" if waiting else "")
        )


def describe_crawl(step: CrawlStep) -> str:
    """The result of asking one server, in words."""
    if step.stage is CrawlStage.FAILED:
        return f"failed: {step.message}"
    if step.stage is not CrawlStage.LISTED:
        return step.message or "is being asked by another process"
    return f"{step.tools} tools" + (f" ({CHANGE_PATTERN.sub(_describe_change, step.message)})" if step.message else "")


def _describe_change(match: re.Match[str]) -> str:
    count, kind, names = match.groups()
    if kind == "held":
        return f"{count} changed and held back: {names}; {REVIEW_COMMAND}"
    return f"{count} changed, and in use as it is now: {names}; look at it: {REVIEW_COMMAND}"


T = TypeVar("T")
POLL_SECONDS = 0.2
NO_SERVERS = "There are no tool servers yet. Add one: frontdesk tools add NAME URL"


def run_with_tools(use: AppFunction[T]) -> T:
    """Run `use` after the catalogue is loaded."""

    async def opened(app: App) -> T:
        await app.tools.catalogue.load()
        try:
            return await use(app)
        finally:
            # Without a server, the command writes these itself.
            await app.tools.learning.flush()
            await app.journal.flush()

    return run_with_app(opened, log_level="error", tools=True)


def run_with_servers(use: AppFunction[T]) -> T:
    """Run `use` after the servers are loaded, without their tools."""

    async def opened(app: App) -> T:
        await app.tools.catalogue.load_servers()
        return await use(app)

    return run_with_app(opened, log_level="error", tools=True)


def server_states(app: App, names: Collection[str]) -> Sequence[ServerState]:
    """The servers with these names, or all servers without names."""
    states = {state.name: state for state in app.tools.catalogue.servers()}
    for name in names:
        if name not in states:
            raise NotFound(not_found_message(f"There is no tool server '{name}'", name, list(states)))
    return [state for name, state in states.items() if not names or name in names]


def explain_no_tools(states: Sequence[ServerState]) -> str:
    """Why these servers have no tools to show, and what to do."""
    new = sum(state.status is ServerStatus.NEW for state in states)
    if new:
        return f"{new} server{' has' if new == 1 else 's have'} not been asked yet: frontdesk tools refresh"
    if any(state.tools for state in states):
        return "There are no such tools."
    return "No server has tools; how each is: frontdesk tools servers" if states else NO_SERVERS


async def prepare_semantic_search(app: App) -> None:
    """Embed tools that were added while no server ran, and show the progress."""
    catalogue = app.tools.catalogue
    if app.settings.embeddings == "off" or not catalogue.index.missing_vectors():
        return
    with ProgressLine(sys.stderr) as told:
        told.log(f"embedding the descriptions of {len(catalogue.index.missing_vectors()):,} tools, once")
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                while True:
                    so_far = catalogue.progress()
                    told.update(f"embedding descriptions: {so_far.embedded:,} of {so_far.tools:,}")
                    await anyio.sleep(POLL_SECONDS)

            tasks.start_soon(watch)
            await catalogue.embed_missing()
            tasks.cancel_scope.cancel()


ADDRESS_PREFIXES = ("http://", "https://", "${")
COMMAND_SEPARATOR = "--"
# The help of the option before these describes them.
CommandWords = Annotated[str, Parameter(show=False)]


def add(  # noqa: PLR0913 - each is an option of the command
    name: str | None = None,
    where: str | None = None,
    /,
    *rest: CommandWords,
    header: Repeated = (),
    env: Repeated = (),
    sse: Flag = False,
    user_token: Flag = False,
    hold_changes: Flag = False,
    description: Text = "",
    manifest: Path | None = None,
    force: Flag = False,
) -> None:
    """Add an MCP server, and list its tools.

    One with an address: frontdesk tools add NAME URL

    A command to start here: frontdesk tools add NAME -- COMMAND ARGUMENTS

    All servers of a file: frontdesk tools add --manifest FILE

    Parameters
    ----------
    name
        The name of the server: letters, digits and hyphens.
    where
        Its address, http(s)://…; or, after --, the command that starts it, with its arguments.
    header
        A header it always gets, as 'Name: value'; ${VARIABLE} in it is read from the environment when it is used.
    env
        A variable for a command, as NAME=value; ${VARIABLE} is read from the environment.
    sse
        Use the older HTTP+SSE transport.
    user_token
        Send it the token of the person that a call is for.
    hold_changes
        Hold back a tool that changes until it is reviewed.
    description
        The purpose of the server.
    manifest
        Add every server of this file instead, as editors and the Agent 365 tooling write it.
    force
        Add it even if it does not answer, and replace one of the same name.
    """
    if manifest is not None:
        specs = [replace(spec, origin=ServerOrigin.ADDED, tools=None) for spec in read_manifest(manifest)]
    elif name is None or where is None:
        raise Invalid("Say what to add: NAME URL, NAME -- COMMAND, or --manifest FILE")
    else:
        command, url = (where, "") if _is_command(where, rest) else ("", _parse_address(where, rest))
        kind = Transport.STDIO if command else Transport.SSE if sse else Transport.HTTP
        specs = [
            ServerSpec(
                name,
                kind,
                url,
                command,
                rest,
                dict(_parse_pair(one, "=", "NAME=value") for one in env),
                dict(_parse_pair(one, ":", "'Name: value'") for one in header),
                user_token,
                description=description,
                hold_changes=hold_changes or None,
            )
        ]
    ends = run_with_tools(lambda app: _add_servers(app, specs, force=force))
    for spec, end in zip(specs, ends, strict=True):
        result = describe_crawl(end) if isinstance(end, CrawlStep) else str(end)
        print(f"{printable_line(spec.name)}: {printable_line(result)}")
    if any(isinstance(end, FrontdeskError) for end in ends):
        sys.exit(1)


def remove(name: Annotated[str, Parameter(help="The server's name, as `tools servers` lists it.")], /) -> None:
    """Remove a server that was added, and its tools."""
    run_change(
        f"tools remove {name}",
        lambda app, _: app.tools.administration.remove_server(local_caller(), name),
        run_with_tools,
    )
    print(f"{printable_line(name)} is removed, and its tools with it.")


def refresh(*server: Annotated[str, Parameter(help="Only these; all of them when none is named.")]) -> None:
    """List the tools of servers now, and show the changes; exit 1 if one does not answer."""

    async def ask(app: App, _record: CallRecord) -> Sequence[CrawlStep]:
        catalogue = app.tools.catalogue
        named = app.settings
        if named.mcp_servers or named.tools_manifest or named.platform_app_id:
            # The named servers may never have been asked, if no server ran yet.
            await catalogue.declare()
        with ProgressLine(sys.stderr) as told:
            follow = CrawlProgress(told, len(server) or len(catalogue.servers()))
            return await app.tools.administration.refresh(local_caller(), server or None, follow.step)

    steps = run_change(" ".join(("tools refresh", *server)), ask, run_with_tools)
    rows = [(step.server, describe_crawl(step)) for step in steps]
    print(format_table(("server", "tools"), rows) if rows else NO_SERVERS)
    if any(step.stage is CrawlStage.FAILED for step in steps):
        sys.exit(1)


async def _add_servers(app: App, specs: Sequence[ServerSpec], *, force: bool) -> Sequence[CrawlStep | FrontdeskError]:
    """Add servers one after the other. A server that does not answer does not stop the others."""
    ends: list[CrawlStep | FrontdeskError] = []
    with ProgressLine(sys.stderr) as told:
        for spec in specs:
            told.update(f"asking {spec.name} for its tools")
            try:
                with record_change(app, f"tools add {spec.name}"):
                    ends.append(await app.tools.administration.add_server(local_caller(), spec, force=force))
            except FrontdeskError as error:
                if len(specs) == 1:
                    raise
                ends.append(error)
    return ends


def _is_command(where: str, rest: Sequence[str]) -> bool:
    """Whether all of these arguments came after --, which the parser does not record."""
    typed = sys.argv[1:]
    return COMMAND_SEPARATOR in typed and typed[typed.index(COMMAND_SEPARATOR) + 1 :] == [where, *rest]


def _parse_address(where: str, rest: Sequence[str]) -> str:
    if not where.lower().startswith(ADDRESS_PREFIXES):
        raise Invalid(f"'{where}' is not an address; write http(s)://…, or put a command after --")
    if rest:
        raise Invalid(f"'{rest[0]}' is one argument too many; a command goes after --")
    return where


def _parse_pair(text: str, separator: str, form: str) -> tuple[str, str]:
    name, found, value = text.partition(separator)
    if not found or not name.strip():
        raise Invalid(f"'{text}' is not of the form {form}")
    return name.strip(), value.strip() if separator == ":" else value


RuleSubject = Annotated[str, Parameter(help="agent:ID, user:ID, or '*' for everybody.")]
RulePattern = Annotated[
    str, Parameter(help="server::tool, where * stands for anything; a server's name alone means all of its tools.")
]
NO_RULES = "No rules: everybody may use every tool. Add one: frontdesk tools rights deny SUBJECT PATTERN"

rights_command = Command(
    name="rights",
    help="Who may use which tools. Without any rule, everybody may use everything. Without a command, the rules are "
    "listed.",
)


@rights_command.default
def list_rules() -> None:
    """List the rules."""
    rules = run_with_app(lambda app: app.tools.administration.rules(local_caller()), tools=True)

    def row(rule: AccessRule) -> tuple[str, ...]:
        return rule.id, rule.subject, rule.effect, rule.pattern

    print_list(rules, ("id", "who", "rule", "tools"), row, empty=NO_RULES, as_json=False)


@rights_command.command
def allow(subject: RuleSubject, pattern: RulePattern, /) -> None:
    """Allow tools to a subject. A subject with allow rules may use only the tools that these rules name."""
    _add_rule(subject, AccessEffect.ALLOW, pattern)


@rights_command.command
def deny(subject: RuleSubject, pattern: RulePattern, /) -> None:
    """Deny tools to a subject, whatever other rules allow."""
    _add_rule(subject, AccessEffect.DENY, pattern)


@rights_command.command(name="remove")
def remove_rule(rule_id: Annotated[str, Parameter(help="The rule's id, as `tools rights` lists it.")], /) -> None:
    """Remove a rule."""
    run_change(
        f"tools rights remove {rule_id}", lambda app, _: app.tools.administration.remove_rule(local_caller(), rule_id)
    )
    print(f"Rule {printable_line(rule_id)} is gone.")


def forget(
    *,
    agent: Annotated[str | None, Parameter(help="The tools that this agent used when it worked for no person.")] = None,
    user: Annotated[str | None, Parameter(help="The tools that were used for this person.")] = None,
    local: Annotated[Flag, Parameter(help="The tools that were used without a name.")] = False,
) -> None:
    """Delete what is learned about the tools that an agent, a person, or unnamed local calls used."""
    if (agent is not None) + (user is not None) + local != 1:
        raise Invalid("Say whose uses to forget: --agent AGENT, --user USER or --local")
    whose = local_caller(agent=agent, user=user)

    async def clear(app: App, record: CallRecord) -> None:
        record.caller = whose
        await app.tools.administration.forget(whose)

    run_change("tools forget", clear)
    print(f"Forgotten: which tools were of use to {printable_line(tenant_of(whose))}.")


def _add_rule(subject: str, effect: AccessEffect, pattern: str) -> None:
    async def write(app: App, _record: CallRecord) -> AccessRule:
        _check_pattern(app, pattern.strip())
        return await app.tools.administration.add_rule(local_caller(), subject, effect, pattern)

    rule = run_change(f"tools rights {effect} {subject} {pattern}", write, run_with_servers)
    may = "may use" if rule.effect is AccessEffect.ALLOW else "may not use"
    print(f"Rule {rule.id}: {printable_line(rule.subject)} {may} {printable_line(rule.pattern)}")


def _check_pattern(app: App, pattern: str) -> None:
    """Refuse patterns that match nothing: a tool's bare name would be read as a server's name."""
    server, separator, _ = pattern.partition(ID_SEPARATOR)
    if any(fnmatchcase(state.name, server) for state in app.tools.catalogue.servers()) or not server or "*" in server:
        return
    if not separator:
        raise NotFound(f"There is no tool server '{server}'; a rule names tools as server::tool")
    print(f"There is no tool server '{printable_line(server)}' yet; the rule waits for it.", file=sys.stderr)
