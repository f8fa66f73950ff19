"""A tool of ours that is told the id of its call, so that it can show what it does, and that may wait for a person."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from frontdesk.loop.tools import TOOL_SECONDS, Given, Tool, ToolOutcome, typed_tool
from frontdesk.workspace.permissions.model import ASK_SECONDS

# What a person may take to answer, and what is done before and after it.
PERSON_SECONDS = ASK_SECONDS + TOOL_SECONDS

G = TypeVar("G", bound=Given)


def called_tool(
    name: str,
    description: str,
    arguments: type[G],
    run: Callable[[str, G], Awaitable[ToolOutcome]],
    seconds: float = TOOL_SECONDS,
    *,
    reads_only: bool = False,
) -> Tool:
    """As `typed_tool`, for what takes the id of the call first."""

    def within(call_id: str) -> Tool:
        return typed_tool(name, description, arguments, partial(run, call_id), reads_only=reads_only)

    async def run_call(call_id: str, given: Mapping[str, Any]) -> ToolOutcome:
        return await within(call_id).run(given)

    return replace(within(""), run_call=run_call, seconds=seconds)
