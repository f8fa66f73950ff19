"""Implements `frontdesk agents`: create, show, equip and delete agents, on either host."""

import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Annotated, Any, TypeVar

from cyclopts import App as Command
from cyclopts import Parameter

from frontdesk.agents.host import EVERYONE, Agent, AgentHost, HeldTool, MemoryBlock, NewAgent, PersonFilter
from frontdesk.app import App, delete_agent
from frontdesk.errors import Invalid, NotFound
from frontdesk.interfaces.app_runner import AppFunction, local_caller, run_change, run_with_app
from frontdesk.interfaces.cli.output import (
    EMPTY_CELL,
    AgentArgument,
    AsJsonLines,
    Flag,
    Repeated,
    Text,
    format_table,
    format_time,
    print_list,
    printable_line,
    printable_text,
)
from frontdesk.journal.service import CallRecord
from frontdesk.llm.events import ApprovalRequest, Done, StopReason

T = TypeVar("T")
command = Command(name="agents")
MOST_SHOWN = 1000
CONVERSATIONS = 10
STANDARD_INPUT = "-"


@command.command
def create(
    name: str,
    /,
    *,
    description: Text = "",
    model: str | None = None,
    persona: Text | None = None,
    block: Repeated = (),
    owner: str | None = None,
) -> None:
    """Create an agent and print its id.

    Parameters
    ----------
    name
        The name of the agent.
    description
        The purpose of the agent.
    model
        The model that it uses, e.g. anthropic:claude-sonnet-5-5, or anthropic/claude-sonnet-5-5 on Letta; the
        host's default when left out.
    persona
        Who it is and how it speaks: the text of its memory block 'persona'.
    block
        A memory block as LABEL=TEXT, repeated for several. The text of 'human' is the initial value for each person.
    owner
        The person who manages it: turns for them may change all of its memory, as turns for you may.
    """
    blocks = [*([MemoryBlock("persona", persona)] if persona is not None else []), *map(_parse_block, block)]

    async def make(app: App, record: CallRecord) -> Agent:
        made = await app.host.create(NewAgent(name, description, model, blocks, owner))
        record.caller = local_caller(agent=made.id)
        return made

    print(run_change("agents create", make).id)


command.command(create, name="add", show=False)


@command.command(name="list")
def list_agents(*, as_json: AsJsonLines = False) -> None:
    """List the agents."""
    agents = run_with_app(lambda app: app.host.list(MOST_SHOWN))

    def row(agent: Agent) -> tuple[str, ...]:
        return agent.id, agent.name, agent.model or EMPTY_CELL, printable_line(agent.description, 60)

    empty = "No agents yet. Make one: frontdesk agents create NAME"
    print_list(agents, ("id", "name", "model", "description"), row, empty=empty, as_json=as_json)


@command.command
def show(agent: AgentArgument, /) -> None:
    """Show an agent: its model, memory blocks, tools and conversations."""
    print(run_with_app(lambda app: _describe_agent(app.host, agent)))


@command.command
def delete(
    agent: AgentArgument,
    /,
    *,
    yes: Annotated[Flag, Parameter(help="Delete without asking for the name.")] = False,
) -> None:
    """Delete an agent with its memory, its conversations and its API keys."""
    found = run_with_app(lambda app: find_agent(app.host, agent))
    if not yes:
        _confirm(found)

    async def end(app: App, record: CallRecord) -> Sequence[str]:
        record.caller = local_caller(agent=found.id)
        return await delete_agent(app, found.id)

    ended = run_change("agents delete", end)
    print(f"{printable_line(found.name)} ({found.id}) is deleted.")
    if ended:
        print(f"Its keys no longer work: {', '.join(ended)}")


@command.command
def attach(
    agent: AgentArgument,
    server: Annotated[str, Parameter(help="The server's name, as `tools servers` lists it.")],
    tool: Annotated[str, Parameter(help="The tool's name on that server.")],
    /,
    *,
    needs_approval: Annotated[Flag, Parameter(help="Ask a person before each call.")] = False,
) -> None:
    """Attach a tool of an MCP server to an agent, and print the tool's name."""

    async def give(app: App, found: Agent) -> str:
        await app.host.attach(found.id, HeldTool(tool, "", needs_approval, server, tool))
        held = await app.host.tools(found.id)
        return next((one.name for one in held if (one.server, one.remote_name) == (server, tool)), tool)

    run = partial(run_with_app, tools=True)
    print(printable_line(_change_agent(f"agents attach {server}::{tool}", agent, give, run=run)))


@command.command
def detach(
    agent: AgentArgument,
    tool: Annotated[str, Parameter(help="The tool's name, as `agents show` lists it.")],
    /,
) -> None:
    """Detach a tool from an agent."""
    _change_agent(f"agents detach {tool}", agent, lambda app, found: app.host.detach(found.id, tool))
    print(f"{printable_line(tool)} is detached.")


@command.command(usage="Usage: frontdesk agents block AGENT LABEL [TEXT] [OPTIONS]")
def block(
    agent: AgentArgument,
    label: Annotated[str, Parameter(help="The label of the block.")],
    text: Annotated[Text | None, Parameter(help="The whole new text; - reads it from standard input.")] = None,
    /,
    *,
    user: Annotated[
        str | None, Parameter(help="The person whose text to use, where each person has their own. Without it, yours.")
    ] = None,
    start: Annotated[Flag, Parameter(help="Use the initial text of each person, where each has their own.")] = False,
    per_person: Annotated[
        bool | None,
        Parameter(help="Whether each person has a text of their own. The current text is then the initial value."),
    ] = None,
    people_write: Annotated[
        bool | None, Parameter(help="Whether turns for people who do not manage the agent may change a shared block.")
    ] = None,
) -> None:
    """Print a memory block, replace its text, or set whose it is."""
    if start and user is not None:
        raise Invalid("Give --user or --start, not both")
    owner: PersonFilter = EVERYONE if start else user
    new = sys.stdin.read().removesuffix("\n") if text == STANDARD_INPUT else text
    if text is None and per_person is None and people_write is None:
        value = run_with_app(lambda app: _read_block(app.host, agent, label, owner))
        print(printable_text(value) if sys.stdout.isatty() else value)
        return

    async def write(app: App, found: Agent) -> str:
        lines: list[str] = []
        if per_person is not None or people_write is not None:
            changed = await app.host.set_block(found.id, label, per_person=per_person, people_write=people_write)
            lines.append(f"{printable_line(changed.label)}: {_block_ownership(changed)}")
        if new is not None:
            written = await app.host.write_block(found.id, label, new, user_id=owner)
            size = f"{len(written.value)} of {written.limit} characters"
            lines.append(f"{printable_line(written.label)}: {size}")
        return "\n".join(lines)

    print(_change_agent(f"agents block {label}", agent, write, user=user))


def _change_agent(
    action: str,
    agent: str,
    change: Callable[[App, Agent], Coroutine[Any, Any, T]],
    *,
    user: str | None = None,
    run: Callable[[AppFunction[T]], T] = run_with_app,
) -> T:
    """Change an agent by its id or name. The journal entry names the agent as the caller, and the person if given."""

    async def use(app: App, record: CallRecord) -> T:
        found = await find_agent(app.host, agent)
        record.caller = local_caller(agent=found.id, user=user)
        return await change(app, found)

    return run_change(action, use, run)


async def find_agent(host: AgentHost, text: str) -> Agent:
    """The agent with this id, or with this name if only one agent has it."""
    if (found := await host.find(text)) is not None:
        return found
    same = [agent for agent in await host.list(MOST_SHOWN) if agent.name == text]
    if len(same) > 1:
        ids = ", ".join(agent.id for agent in same)
        raise Invalid(f"{len(same)} agents are called '{text}'; give the id of one of them: {ids}")
    if not same:
        raise NotFound(f"There is no agent '{text}'; `frontdesk agents list` shows them")
    return same[0]


async def _read_block(host: AgentHost, agent: str, label: str, owner: PersonFilter) -> str:
    blocks = {block.label: block.value for block in await host.blocks((await find_agent(host, agent)).id, owner)}
    if label not in blocks:
        raise NotFound(
            f"There is no memory block '{label}'; there are: {', '.join(map(printable_line, blocks)) or 'none'}"
        )
    return blocks[label]


async def _describe_agent(host: AgentHost, agent: str) -> str:
    found = await find_agent(host, agent)
    serves = [("serves", printable_line(found.serves))] if found.serves else []
    facts = [
        ("id", found.id),
        ("name", printable_line(found.name)),
        ("description", printable_line(found.description) or EMPTY_CELL),
        ("model", printable_line(found.model or "the host's default")),
        *serves,
        *([("owner", printable_line(found.owner))] if found.owner else []),
    ]
    return "\n\n".join(
        (
            "\n".join(f"{name:<13}{value}" for name, value in facts),
            await _describe_blocks(host, found.id),
            await _describe_tools(host, found.id),
            await _describe_conversations(host, found.id),
        )
    )


async def _describe_blocks(host: AgentHost, agent_id: str) -> str:
    rows = [
        (
            block.label,
            f"{len(block.value)} of {block.limit}",
            "yes" if block.read_only else EMPTY_CELL,
            _block_ownership(block),
        )
        for block in await host.blocks(agent_id)
    ]
    if not rows:
        return "No memory blocks."
    people = await host.people(agent_id)
    others = f"\nIt keeps something of its own of: {', '.join(map(printable_line, people))}" if people else ""
    return format_table(("memory block", "characters", "read-only", "whose"), rows) + others


async def _describe_tools(host: AgentHost, agent_id: str) -> str:
    rows = [
        (tool.name, tool.server or EMPTY_CELL, "asks first" if tool.needs_approval else EMPTY_CELL)
        for tool in await host.tools(agent_id)
    ]
    return format_table(("tool", "server", "approval"), rows) if rows else "No tools besides its own."


async def _describe_conversations(host: AgentHost, agent_id: str) -> str:
    rows: list[tuple[str, ...]] = []
    for one in await host.conversations(agent_id, CONVERSATIONS):
        how = await conversation_state(host, agent_id, one.id) or EMPTY_CELL
        whose = printable_line(one.user_id or "", 40) or EMPTY_CELL
        rows.append((one.id, printable_line(one.title, 40) or EMPTY_CELL, whose, format_time(one.created_at), how))
    if not rows:
        return f"No conversations yet. Begin one: frontdesk chat {agent_id}"
    # Letta does not store how a turn ended.
    shown = 5 if any(row[4] != EMPTY_CELL for row in rows) else 4
    return format_table(
        ("conversation", "title", "person", "begun", "last turn")[:shown], [row[:shown] for row in rows]
    )


def _parse_block(text: str) -> MemoryBlock:
    label, found, value = text.partition("=")
    if not found:
        raise Invalid(f"'{text}' is not a memory block; write LABEL=TEXT")
    return MemoryBlock(label, value)


def _block_ownership(block: MemoryBlock) -> str:
    if block.per_person:
        return "each person's own"
    return "shared, and people's turns may change it" if block.people_write else "shared"


def _confirm(agent: Agent) -> None:
    if not sys.stdin.isatty():
        raise Invalid("There is no terminal to ask for confirmation; add --yes")
    try:
        typed = input(
            f"Its memory, conversations and keys go with it. Type {printable_line(agent.name)} to delete it: "
        )
    except EOFError:
        typed = ""
    if typed.strip() != printable_line(agent.name):
        raise Invalid("That is not its name; nothing was deleted")


async def conversation_state(host: AgentHost, agent_id: str, conversation_id: str) -> str | None:
    """The state of a conversation in a few words. None if the host does not know it."""
    said = await host.history(agent_id, conversation_id, limit=1)
    match said[-1].event if said else None:
        case ApprovalRequest() | Done(StopReason.REQUIRES_APPROVAL):
            return "waits for approval"
        case Done(stop):
            return stop
        case _:
            return None


async def find_agent_id(app: App, text: str | None) -> str | None:
    """The agent's id. Agents that the host no longer knows may still have schedules, so their ids are accepted."""
    if text is None:
        return None
    try:
        return (await find_agent(app.host, text)).id
    except NotFound:
        return text
