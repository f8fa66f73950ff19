"""The tools with which a built-in agent gets others: `find_tools` and `call_tool`."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field, SecretStr

from frontdesk.agents.host import HeldTool
from frontdesk.errors import Invalid
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import TOOLS_ATTACH, TOOLS_CALL
from frontdesk.loop.tools import Given, Tool, ToolOutcome, typed_tool
from frontdesk.tools.service import Tools, Wanted
from frontdesk.tools.telling import told

FIND = (
    "Find tools for a task in the catalogue and get them attached. Say what you want to do in a sentence; "
    "what is found can be used at once."
)
CALL = "Call any tool of the catalogue by the name or id that find_tools gave, without attaching it."


def arguments_of(given: object) -> Mapping[str, Any]:
    """The arguments of `call_tool`: an object, also where it comes as JSON text, as many models send it."""
    if given is None:
        return {}
    if isinstance(given, str):
        try:
            given = json.loads(given) if given.strip() else {}
        except (ValueError, RecursionError) as error:
            raise Invalid(f"`arguments` must be a JSON object, and is text that is no JSON: {error}") from error
    if not isinstance(given, Mapping):
        raise Invalid('`arguments` must be a JSON object: {"argument": value, …}')
    return cast("Mapping[str, Any]", given)


class Find(Given):
    """What to look for."""

    query: str = Field(min_length=1, max_length=2000, description="What the tool should do, in plain words")
    limit: int = Field(5, ge=1, le=25, description="At most so many tools")
    min_score: float = Field(50, ge=0, le=100, description="How well one must fit, from 0 to 100")
    keep_tools: list[str] = Field(default_factory=list[str], max_length=100, description="Tools that must stay")


class Call(Given):
    """What to call."""

    name: str = Field(min_length=1, max_length=300, description="The tool's id or name")
    arguments: Annotated[Mapping[str, Any], BeforeValidator(arguments_of)] = Field(
        default_factory=dict[str, Any], description="Its arguments"
    )


class OwnTools:
    """Handed to the agent host before the tools room stands, and opened once it does."""

    def __init__(self) -> None:
        self._tools: Tools | None = None

    def open(self, tools: Tools) -> None:
        self._tools = tools

    async def offered(self) -> Sequence[HeldTool]:
        """What the agent host itself has to offer."""
        return () if self._tools is None else await self._tools.host.offered()

    def of(self, caller: Caller, token: SecretStr | None) -> Sequence[Tool]:
        """The two tools, for one agent; where there is nothing to find, none."""
        tools = self._tools
        if tools is None or not len(tools.catalogue.index):
            return ()

        async def find(given: Find) -> ToolOutcome:
            wanted = Wanted(given.query, given.keep_tools, given.limit, given.min_score)
            return ToolOutcome(told(await tools.find(caller, wanted), least=given.min_score, at_once=True))

        async def call(given: Call) -> ToolOutcome:
            result = await tools.calling.call(caller, given.name, given.arguments, token=token)
            return ToolOutcome(result.text, ok=result.ok)

        async def only_reads(given: Mapping[str, Any]) -> bool:
            name = given.get("name")
            return isinstance(name, str) and await tools.calling.reads_only(name)

        return [
            typed_tool("find_tools", FIND, Find, find, TOOLS_ATTACH),
            typed_tool("call_tool", CALL, Call, call, TOOLS_CALL, reads_only=only_reads),
        ]
