"""The tools with which a built-in agent gets others: `find_tools` and `call_tool`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field, SecretStr

from frontdesk.agents.host import HeldTool
from frontdesk.identity.model import Caller
from frontdesk.loop.tools import Given, Tool, ToolOutcome, typed_tool
from frontdesk.tools.service import Tools, Wanted
from frontdesk.tools.telling import told

FIND = (
    "Find tools for a task in the catalogue and get them attached. Say what you want to do in a sentence; "
    "what is found can be used at once."
)
CALL = "Call any tool of the catalogue by the name or id that find_tools gave, without attaching it."


class Find(Given):
    """What to look for."""

    query: str = Field(min_length=1, max_length=2000, description="What the tool should do, in plain words")
    limit: int = Field(5, ge=1, le=25, description="At most so many tools")
    min_score: float = Field(50, ge=0, le=100, description="How well one must fit, from 0 to 100")
    keep_tools: list[str] = Field(default_factory=list[str], max_length=100, description="Tools that must stay")


class Call(Given):
    """What to call."""

    name: str = Field(min_length=1, max_length=300, description="The tool's id or name")
    arguments: Mapping[str, Any] = Field(default_factory=dict[str, Any], description="Its arguments")


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
        # The agent acts here: what whoever talks with it may do by themselves is another matter.
        caller = replace(caller, scopes=None)

        async def find(given: Find) -> ToolOutcome:
            wanted = Wanted(given.query, given.keep_tools, given.limit, given.min_score)
            return ToolOutcome(told(await tools.find(caller, wanted), least=given.min_score, at_once=True))

        async def call(given: Call) -> ToolOutcome:
            result = await tools.calling.call(caller, given.name, given.arguments, token=token)
            return ToolOutcome(result.text, ok=result.ok)

        return [typed_tool("find_tools", FIND, Find, find), typed_tool("call_tool", CALL, Call, call)]
