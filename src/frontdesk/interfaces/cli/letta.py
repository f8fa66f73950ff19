"""Implements `frontdesk letta`: register with a Letta server, and mark whom its agents serve."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, TypeVar, cast

from cyclopts import App as Command
from cyclopts import Parameter

from frontdesk.app import App, base_url
from frontdesk.errors import ConfigurationError
from frontdesk.interfaces.app_runner import local_caller, run_change, run_with_app
from frontdesk.interfaces.cli.agents import find_agent
from frontdesk.interfaces.cli.output import (
    EMPTY_CELL,
    AgentArgument,
    AsJsonLines,
    Flag,
    dump_json,
    print_list,
    printable_line,
)
from frontdesk.interfaces.cli.person import require_user_id
from frontdesk.journal.service import CallRecord

if TYPE_CHECKING:
    from frontdesk.agents.letta.connect import ConnectResult
    from frontdesk.agents.letta.host import LettaHost
    from frontdesk.agents.letta.people_store import AgentAssignment

T = TypeVar("T")
command = Command(name="letta")
MOST_AGENTS = 10_000
NO_ASSIGNMENTS = "Nothing is known yet. An agent is a person's from their first turn on, unless you mark it."


@command.command(usage="Usage: frontdesk letta connect [OPTIONS] [AGENT …]")
def connect(
    *agents: str,
    url: str | None = None,
    name: str = "frontdesk",
    every: Annotated[bool, Parameter(name="--all", negative=(), show_default=False)] = False,
    rotate: Flag = False,
) -> None:
    """Register Frontdesk's MCP address with Letta, and give agents its tools and a key of their own.

    The command can be repeated: it changes only what differs.

    Parameters
    ----------
    agents
        The agents to connect, by id or name; none only registers the address.
    url
        The MCP address at which Letta reaches Frontdesk. Without it, /mcp below FRONTDESK_PUBLIC_URL or the local
        address.
    name
        The name of the MCP server on the Letta server.
    every
        Connect every agent of the Letta server.
    rotate
        Issue new keys, and revoke the old ones.
    """

    async def use(app: App, record: CallRecord) -> "ConnectResult":
        host = _require_letta_host(app)
        from frontdesk.agents.letta.connect import ConnectRequest, LettaConnector  # noqa: PLC0415
        from frontdesk.interfaces.mcp.server import main_tools  # noqa: PLC0415
        from frontdesk.interfaces.mcp.tools import mcp_tool, tool_name  # noqa: PLC0415

        chosen = [agent.id for agent in await app.host.list(MOST_AGENTS)] if every else agents
        tools = main_tools(bound.operation for bound in app.operations())
        address, names = url or f"{base_url(app.settings)}/mcp", [tool_name(tool) for tool in tools]
        handed = frozenset(tool_name(tool) for tool in tools if mcp_tool(tool).handed_to_agents)
        wanted = ConnectRequest(address, name, names, tuple(chosen), rotate, handed)
        connected = await LettaConnector(host, app.identity, app.keys).connect(wanted)
        record.action += "".join(f" {agent.id}" for agent in connected.agents)
        return connected

    _print_connected(run_change("letta connect", use), name)


@command.command
def template(agent: AgentArgument, /, *, as_it_is: Flag = False) -> None:
    """Make an agent a template: each person who names it gets an agent of their own, created from it on first use.

    Parameters
    ----------
    as_it_is
        Also if it has talked with people already. Everybody then gets what its memory blocks say about them.
    """
    agent_id, _ = _mark_agent(
        "letta template", agent, lambda host, found: host.assignments.make_template(found, as_it_is=as_it_is)
    )
    print(f"{agent_id} is a template: each person gets an agent made from it.")


@command.command
def share(agent: AgentArgument, /) -> None:
    """Share one agent among several people. What it learns about one person, it knows with the others."""
    agent_id, _ = _mark_agent("letta share", agent, lambda host, found: host.assignments.share(found))
    print(f"{agent_id} is shared: what it learns of one person, the others may be told.")


@command.command
def unmark(agent: AgentArgument, /, *, user: str | None = None) -> None:
    """Let an agent serve one person again: the only person who has talked with it, or the next one who does.

    Parameters
    ----------
    user
        The person that it should serve. Needed if several people have talked with it.
    """
    person = None if user is None else require_user_id(user)
    agent_id, served = _mark_agent(
        "letta unmark", agent, lambda host, found: host.assignments.keep_apart(found, person)
    )
    if served is None:
        print(f"{agent_id} is for whoever talks with it first.")
    else:
        print(f"{agent_id} serves {printable_line(served.user_id or '')} alone.")


@command.command(name="agents")
def list_agents(*, as_json: AsJsonLines = False) -> None:
    """List whom the agents of the Letta server serve: one person, several, or nobody as a template."""

    async def read(app: App) -> tuple[Sequence["AgentAssignment"], Mapping[str, str]]:
        known = await _require_letta_host(app).assignments.store.listed()
        return known, await app.host.names([one.agent_id for one in known if one.agent_id])

    known, names = run_with_app(read)

    def row(one: "AgentAssignment") -> tuple[str, ...]:
        name = names.get(one.agent_id or "", EMPTY_CELL)
        return one.agent_id or "", name, one.description, one.template_id or EMPTY_CELL, one.remark

    def to_json(one: "AgentAssignment") -> str:
        return dump_json({**asdict(one), "name": names.get(one.agent_id or "")})

    head = ("id", "name", "serves", "made from", "remark")
    print_list(known, head, row, empty=NO_ASSIGNMENTS, as_json=as_json, to_json=to_json)


def _mark_agent(action: str, agent: str, mark: Callable[["LettaHost", str], Awaitable[T]]) -> tuple[str, T]:
    """Mark an agent, and return its id and what `mark` returns."""

    async def change(app: App, record: CallRecord) -> tuple[str, T]:
        host = _require_letta_host(app)
        found = await find_agent(host, agent)
        record.caller = local_caller(agent=found.id)
        return printable_line(found.id), await mark(host, found.id)

    return run_change(action, change)


def _require_letta_host(app: App) -> "LettaHost":
    if app.settings.letta_base_url is None:
        raise ConfigurationError("No Letta server is set; say where it is in LETTA_BASE_URL")
    return cast("LettaHost", app.host)


def _print_connected(connected: "ConnectResult", name: str) -> None:
    did = "is registered with Letta now" if connected.created else "is registered with Letta"
    print(f"'{printable_line(name)}' {did}: {printable_line(', '.join(connected.tools))}")
    for agent in connected.agents:
        key = "new key" if agent.new_key else "key kept"
        tools = f"got {printable_line(', '.join(agent.attached))}" if agent.attached else "had all tools"
        print(f"{printable_line(agent.id)} ({printable_line(agent.name)}): {key}, {tools}")
    if not connected.agents:
        print("No agent was connected. Name some: frontdesk letta connect AGENT …, or --all")
