"""Shows the list of agents, one agent, and its memory blocks; creates, edits and deletes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from frontdesk.agents.host import EVERYONE, Agent, MemoryBlock, NewAgent, PersonFilter, host_answer_in_time
from frontdesk.agents.memory_blocks import BlockChange, block_changes, find_block, value_fingerprint
from frontdesk.agents.turns.model import TurnQuery
from frontdesk.app import delete_agent
from frontdesk.identity.model import AgentIdSource
from frontdesk.interfaces.web.agent_lookup import agent_not_found, agent_path, find_agent, require_agent
from frontdesk.interfaces.web.model import (
    ActionRoute,
    PageContent,
    PageRedirect,
    PageRequest,
    PageRoute,
    StreamRoute,
    server_path,
    tool_path,
)
from frontdesk.interfaces.web.pages.people import require_user_id
from frontdesk.interfaces.web.pages.talk import (
    begin_conversation,
    decide_calls,
    own_conversation,
    send_message,
    show_talk,
)
from frontdesk.interfaces.web.pages.turns import turn_outcome
from frontdesk.interfaces.web.rendering import shorten
from frontdesk.interfaces.web.text_diff import ChangedWords, diff_words
from frontdesk.journal.model import EntryKind
from frontdesk.journal.store import AgentIdUse, JournalQuery
from frontdesk.schedules.model import from_us
from frontdesk.tools.agent_tools import AgentTool
from frontdesk.tools.model import CatalogueTool

# How many rows of the journal are read for each agent to compute shares.
NEWEST_CALLS = 200
CALL_KINDS = (EntryKind.CALL, EntryKind.DENIAL)
# (source of an agent's id, how far it can be trusted), most trusted first.
SOURCE_WORDS: dict[AgentIdSource, tuple[str, str]] = {
    AgentIdSource.CREDENTIAL: ("its key or token", "proves who calls"),
    AgentIdSource.HEADER: ("the header x-agent-id", "asserted by the client, the same on every request"),
    AgentIdSource.PARAMETER: ("the parameter agent_id", "asserted by the writer of the call, possibly a model"),
    AgentIdSource.METADATA: ("the metadata of the request", "asserted by the client"),
    AgentIdSource.ENVIRONMENT: ("a setting of this server", "the request named nobody; the setting was used"),
    AgentIdSource.SINGLE_AGENT: ("being the only agent", "the request named nobody; there is only this agent"),
    AgentIdSource.SCHEDULE: ("a schedule of its own", "this server started its turn"),
    AgentIdSource.OPERATOR: ("nothing in the request", "the operator at this machine called it or named it"),
    AgentIdSource.NONE: ("nothing in the request", "the request named nobody"),
}


@dataclass(frozen=True, slots=True)
class IdSourceRow:
    """One way in which calls identified an agent."""

    source: AgentIdSource
    words: str
    trust: str
    verified: bool
    times: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class HeaderShare:
    """How many of an agent's newest calls identified it by header, and how many by parameter."""

    header: int = 0
    parameter: int = 0

    @property
    def all(self) -> int:
        return self.header + self.parameter

    @property
    def percent(self) -> int | None:
        """The share of calls by header. None if there were neither."""
        return round(100 * self.header / self.all) if self.all else None


def header_share(namings: Sequence[AgentIdUse]) -> HeaderShare:
    """The shares among calls. Entries that follow from a call are ignored, or it would count twice."""

    def of(source: AgentIdSource) -> int:
        return sum(one.times for one in namings if one.source is source and one.kind in CALL_KINDS)

    return HeaderShare(of(AgentIdSource.HEADER), of(AgentIdSource.PARAMETER))


def last_called_at(namings: Sequence[AgentIdUse]) -> datetime | None:
    return max((one.last_at for one in namings), default=None)


def id_sources(namings: Sequence[AgentIdUse]) -> Sequence[IdSourceRow]:
    """Each way once, most trusted first, and proven before asserted."""
    found = sorted(
        {(one.source, one.verified) for one in namings}, key=lambda way: (list(AgentIdSource).index(way[0]), not way[1])
    )
    return [
        _id_source(source, [one for one in namings if (one.source, one.verified) == (source, verified)])
        for source, verified in found
    ]


def _id_source(source: AgentIdSource, same: Sequence[AgentIdUse]) -> IdSourceRow:
    words, trust = SOURCE_WORDS[source]
    times, last = sum(one.times for one in same), max(one.last_at for one in same)
    return IdSourceRow(source, words, trust, same[0].verified, times, last)


@dataclass(frozen=True, slots=True)
class AgentToolRow:
    """A tool of an agent. The addresses are empty for the host's own tools, which have no pages."""

    has: AgentTool
    page: str = ""
    server: str = ""


async def agent_tools(request: PageRequest, agent_id: str) -> Sequence[AgentToolRow]:
    tools = request.app.tools
    held = await tools.held(request.caller, agent_id)
    known = await tools.catalogue.many([one.id for one in held if one.id is not None])
    return [_tool_row(one, known.get(one.id or "")) for one in held]


def _tool_row(has: AgentTool, tool: CatalogueTool | None) -> AgentToolRow:
    return (
        AgentToolRow(has)
        if tool is None
        else AgentToolRow(has, tool_path(tool.id), server_path(tool.server) if has.tool.server else "")
    )


# The host lists its agents from the first one; later pages than this are not offered.
MOST_AGENTS = 1000
AGENTS_PER_PAGE = 20
# Rows of the journal that are read for each agent: fewer than on the agent's own page.
NEWEST_CALLS_IN_LIST = 20


@dataclass(frozen=True, slots=True)
class AgentRow:
    """A row of the list of agents."""

    agent: Agent
    seen_at: datetime | None
    share: HeaderShare
    next_at: datetime | None


async def list_agents(request: PageRequest) -> PageContent:
    """The agents of the host, page by page."""
    query, after = request.query.get("q", "").strip(), request.query.get("after", "")
    every = await host_answer_in_time(request.app.host.list(MOST_AGENTS))
    found = [agent for agent in every if _matches(agent, query)]
    page, more = _page_of_agents(found, after)
    context = {
        "rows": await _agent_rows(request, page),
        "query": query,
        "after": after,
        "more": more,
        "count": len(every),
        "found": len(found),
        "most": MOST_AGENTS,
        "newest": NEWEST_CALLS_IN_LIST,
    }
    return PageContent("agents/list.html", "Agents", context)


async def create_agent(request: PageRequest) -> PageRedirect:
    said = {name: request.form.get(name, "").strip() for name in ("name", "description", "model")}
    made = await request.app.host.create(NewAgent(said["name"], said["description"], said["model"] or None))
    return PageRedirect(f"/agents/{quote(made.id, safe='')}", f"{shorten(made.name, 100)} is made")


async def _agent_rows(request: PageRequest, agents: Sequence[Agent]) -> Sequence[AgentRow]:
    ids = [agent.id for agent in agents]
    named = await request.app.journal.agent_id_uses(ids, NEWEST_CALLS_IN_LIST)
    soonest = await request.app.schedules.queries.next_fire_of_agents(request.caller, ids)
    return [
        AgentRow(
            agent, last_called_at(named[agent.id]), header_share(named[agent.id]), _time_or_none(soonest.get(agent.id))
        )
        for agent in agents
    ]


def _page_of_agents(found: Sequence[Agent], after: str) -> tuple[Sequence[Agent], str]:
    """A page of agents, and the id after which the next page starts."""
    start = next((place + 1 for place, agent in enumerate(found) if agent.id == after), 0)
    page = found[start : start + AGENTS_PER_PAGE]
    return page, page[-1].id if start + AGENTS_PER_PAGE < len(found) else ""


def _matches(agent: Agent, query: str) -> bool:
    wanted = query.casefold()
    return any(wanted in text.casefold() for text in (agent.name, agent.id, agent.description, agent.model or ""))


def _time_or_none(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else from_us(microseconds)


SHOWN_CHANGES = 10
# Not a valid person's id.
EVERYBODY = "\t"


@dataclass(frozen=True, slots=True)
class BlockEdit:
    """A change of a memory block."""

    at: datetime
    pieces: list[ChangedWords]


async def show_memory(request: PageRequest) -> PageContent:
    """The memory blocks with their values, and the history of one block."""
    agent = await require_agent(request)
    person = request.query.get("person", "")
    whose = _memory_owner(request, person)
    blocks = await request.app.host.blocks(agent.id, whose)
    label = request.query.get("block") or next((block.label for block in blocks), "")
    chosen = await find_block(request.app.host, agent.id, label, whose) if label else None
    made = await _block_changes(request, agent.id, chosen, whose) if chosen else ()
    people = await request.app.host.people(agent.id) if chosen and chosen.per_person else ()
    shown = made[:SHOWN_CHANGES] if request.query.get("all") is None else made
    context = {
        "agent": agent,
        "known": True,
        "base": agent_path(request),
        "tab": "memory",
        "blocks": blocks,
        "chosen": chosen,
        "person": person,
        "people": _owner_choices(people, person),
        "mark": value_fingerprint(chosen.value) if chosen else "",
        "edits": [BlockEdit(one.at, diff_words(one.before, one.after)) for one in shown],
        "count": len(made),
    }
    return PageContent("agents/memory.html", f"Memory of {shorten(agent.name, 80)}", context)


async def write_block(request: PageRequest) -> PageRedirect:
    agent = await require_agent(request)
    label = request.form.get("label", "")
    # Browsers send line ends as CR LF.
    value = request.form.get("value", "").replace("\r\n", "\n")
    person = request.form.get("person", "")
    whose = _memory_owner(request, person)
    block = await request.app.host.write_block(agent.id, label, value, request.form.get("seen", ""), whose)
    query = {"block": block.label, **({"person": person} if person else {})}
    return PageRedirect(f"{agent_path(request, 'memory')}?{urlencode(query)}", _written_message(block))


async def _block_changes(
    request: PageRequest, agent_id: str, block: MemoryBlock, owner: PersonFilter
) -> Sequence[BlockChange]:
    return block_changes(block.value, await request.app.host.block_versions(agent_id, block.label, owner))


def _memory_owner(request: PageRequest, person: str) -> PersonFilter:
    """Whose memory is shown: one's own, another person's, or the initial value for everybody."""
    if person == EVERYBODY:
        return EVERYONE
    return require_user_id(person) if person else request.caller.user_id


def _owner_choices(people: Sequence[str], chosen: str) -> Sequence[tuple[str, str]]:
    known = [
        ("", "Yours"),
        (EVERYBODY, "The initial value for each person"),
        *((one, shorten(one, 60)) for one in people),
    ]
    return known if any(chosen == value for value, _ in known) else [*known, (chosen, shorten(chosen, 60))]


def _written_message(block: MemoryBlock) -> str:
    return f"Saved {shorten(block.label, 100)}: {len(block.value)} of {block.limit} characters"


SHOWN_UPCOMING = 5
SHOWN_CONVERSATIONS = 10
SHOWN_CALLS = 12
SHOWN_TURNS = 5


async def show_agent(request: PageRequest) -> PageContent:
    """One agent. For agents that only call Frontdesk and are not on its host, less is known."""
    found = await find_agent(request)
    agent_id = request.path_params["agent_id"]
    named = (await request.app.journal.agent_id_uses([agent_id], NEWEST_CALLS))[agent_id]
    if found is None and not named:
        raise agent_not_found(request)
    shown = found or Agent(agent_id, agent_id)
    upcoming = await request.app.schedules.queries.upcoming(request.caller, agent_id, SHOWN_UPCOMING)
    context = {
        "agent": shown,
        "known": found is not None,
        "base": agent_path(request),
        "tab": "agent",
        "ways": id_sources(named),
        "share": header_share(named),
        "seen_at": last_called_at(named),
        "newest": NEWEST_CALLS,
        "upcoming": [(one, from_us(one.fire_us or 0)) for one in upcoming],
        "lately": list(reversed(await request.app.journal.read(JournalQuery(agent_id=agent_id, limit=SHOWN_CALLS)))),
        **(await _host_context(request, agent_id) if found else {}),
    }
    return PageContent("agents/one.html", shorten(shown.name, 80), context)


async def detach_tool(request: PageRequest) -> PageRedirect:
    found, name = await require_agent(request), request.form.get("tool", "")
    await request.app.tools.detach(request.caller, found.id, name)
    return PageRedirect(agent_path(request), f"{shorten(name, 100)} is detached")


async def _host_context(request: PageRequest, agent_id: str) -> Mapping[str, Any]:
    """What the agent host knows about the agent."""
    host = request.app.host
    conversations = await host.conversations(agent_id, SHOWN_CONVERSATIONS)
    return {
        "held": await agent_tools(request, agent_id),
        "outcome": turn_outcome,
        "blocks": await host.blocks(agent_id, request.caller.user_id),
        "turns": await request.app.turns.list(TurnQuery(agent_id=agent_id, limit=SHOWN_TURNS)),
        "conversations": conversations,
        "own": own_conversation(conversations, SHOWN_CONVERSATIONS),
    }


async def remove_agent(request: PageRequest) -> PageRedirect:
    found = await require_agent(request)
    ended = await delete_agent(request.app, found.id)
    keys = f"; its keys no longer work: {', '.join(ended)}" if ended else ""
    return PageRedirect("/agents", f"{shorten(found.name, 100)} is deleted{keys}")


AGENTS: tuple[PageRoute | ActionRoute | StreamRoute, ...] = (
    PageRoute("/agents", list_agents),
    ActionRoute("/agents/new", create_agent),
    PageRoute("/agents/{agent_id}", show_agent),
    ActionRoute("/agents/{agent_id}/detach", detach_tool),
    ActionRoute("/agents/{agent_id}/delete", remove_agent),
    PageRoute("/agents/{agent_id}/memory", show_memory),
    ActionRoute("/agents/{agent_id}/memory", write_block),
    PageRoute("/agents/{agent_id}/talk", show_talk),
    ActionRoute("/agents/{agent_id}/talk", send_message),
    ActionRoute("/agents/{agent_id}/talk/new", begin_conversation),
    ActionRoute("/agents/{agent_id}/talk/decide", decide_calls),
)
