"""The tools that give agents other tools: `find_tools` and `call_tool`."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from frontdesk.app import App
from frontdesk.identity.model import Caller
from frontdesk.loop.text import one_line, storable
from frontdesk.surfaces import given
from frontdesk.surfaces.findings import Selected
from frontdesk.surfaces.mcp.line import Line
from frontdesk.surfaces.mcp.relay import relayed
from frontdesk.surfaces.mcp.tool import Arguments, Door, Result, ToolSpec, loose
from frontdesk.tools.catalogue.roster.model import ServerState
from frontdesk.tools.own import arguments_of
from frontdesk.tools.service import Wanted
from frontdesk.tools.telling import told

FIND = (
    "Find tools for what you are about to do, and get them attached to you. Say what you want done in a sentence. "
    "The answer names what fits, how well and why, with the arguments it takes; call_tool runs any of it at once. "
    "Use it whenever none of your own tools does the job."
)
CALL = (
    "Run any tool of the catalogue now, by the name or id that find_tools gave, whether it is attached to you or not. "
    "The answer is the tool's own."
)
NAMED_CHARACTERS = 1000
ABOUT_CHARACTERS = 100
RULES = "apply_rules=false has no effect: the limits on an agent's tools always hold"


class FindTools(Arguments):
    """Whatever is given for these is made fit, not refused."""

    query: object = loose("string", "What you want done, in plain words, or a tool's name.", needed=True)
    keep_tools: object = loose("string", "Names or ids of tools that must stay, comma separated.", default="")
    limit: object = loose("integer", "How many to find at most.", default=given.LIMIT, minimum=1, maximum=given.MOST)
    min_score: object = loose("number", "How well one must fit.", default=given.MIN_SCORE, minimum=0, maximum=100)
    servers: object = loose("string", "Look only among these servers, comma separated.", default="")
    dry_run: object = loose("boolean", "Only say what would be attached and detached.", default=False)
    detailed_response: object = loose("boolean", "Give each tool's whole schema too.", default=False)
    follow_up: object = loose("boolean", "Be called on again once this run is over.", default=False)
    request_heartbeat: object = loose("boolean", "Another word for follow_up.", default=False)
    apply_rules: object = loose("boolean", "Accepted for older clients: the rules always apply.", default=True)

    @property
    def wanted(self) -> Wanted:
        return Wanted(
            query=_text(self.query),
            keep=given.tool_names(self.keep_tools),
            limit=given.limit(self.limit),
            min_score=given.min_score(self.min_score),
            dry_run=given.flag(self.dry_run),
            follow_up=given.flag(self.follow_up) or given.flag(self.request_heartbeat),
            servers=frozenset(given.tool_names(self.servers)),
        )


def _text(query: object) -> str:
    """A query as text; half of a character, which JSON can carry, is replaced."""
    text = query if isinstance(query, str) else "" if query is None else json.dumps(query)
    return storable(text)


class CallTool(Arguments):
    """Which tool, with what."""

    name: str = Field(max_length=300, description="The tool's name or id (server::tool).")
    arguments: object = loose(
        "object", "Its arguments, as find_tools named them.", default={}, additionalProperties=True
    )

    @property
    def given(self) -> Mapping[str, Any]:
        return arguments_of(self.arguments)


async def find_tools(app: App, caller: Caller, asked: FindTools) -> Result:
    app.identity.require_agent(caller)
    wanted, detailed = asked.wanted, given.flag(asked.detailed_response)
    outcomes = await app.tools.find(caller, wanted)
    text = told(outcomes, detailed=detailed, least=wanted.min_score)
    if not given.flag(asked.apply_rules, default=True):
        text = f"{text}\n\n{RULES}."
    structured = Selected.made(outcomes, detailed=detailed).model_dump(mode="json", exclude_none=True)
    return Result([{"type": "text", "text": text}], structured)


async def call_tool(app: App, caller: Caller, asked: CallTool, line: Line) -> Result:
    if caller.user_id is None:
        app.identity.require_agent(caller)
    result = await app.tools.calling.call(caller, asked.name, asked.given, token=line.token, progress=line.progress)
    return relayed(result, line.version)


def describe(app: App) -> str:
    """What `find_tools` is for, with the servers that there are by name: agents pass over a promise in general."""
    states = sorted(app.tools.catalogue.servers(), key=lambda state: (-state.tools, state.name))
    named, said = [_named(state) for state in states if state.tools], ""
    for number, name in enumerate(named):
        if said and len(said) + len(name) > NAMED_CHARACTERS:
            return f"{FIND} There are tools of: {said}, and {len(named) - number} more servers."
        said = f"{said}, {name}" if said else name
    return f"{FIND} There are tools of: {said}." if said else FIND


def _named(state: ServerState) -> str:
    about = one_line(state.spec.description, ABOUT_CHARACTERS).rstrip(".")
    return f"{state.name} ({about})" if about else state.name


TOOLS: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="find_tools",
        title="Find tools",
        description=describe,
        arguments=FindTools,
        answer=Selected,
        run=find_tools,
        door=Door.TOOLS,
        read_only=False,
        destructive=False,
        plain=True,
    ),
    ToolSpec(
        name="call_tool",
        title="Call a tool",
        description=CALL,
        arguments=CallTool,
        answer=None,
        run=call_tool,
        door=Door.TOOLS,
        read_only=False,
        destructive=True,
        open_world=True,
        on_line=True,
        plain=True,
    ),
)
