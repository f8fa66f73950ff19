"""Shows one tool and its usage, calls it with a form, and reviews its changes."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from frontdesk.coercion import DEFAULT_LIMIT, DEFAULT_MIN_SCORE
from frontdesk.errors import Invalid
from frontdesk.interfaces.cli.output import reveal_hidden
from frontdesk.interfaces.web.agent_lookup import agent_names, caller_for_agent, list_agent_options
from frontdesk.interfaces.web.model import PageContent, PageRedirect, PageRequest, server_path, tool_path
from frontdesk.interfaces.web.pages.schema_form import form_arguments, schema_fields
from frontdesk.interfaces.web.text_diff import ChangedText, diff_text
from frontdesk.journal.store import ToolCallRecord
from frontdesk.text import parse_json_object
from frontdesk.tools.administration import (
    CALLS_READ,
    USAGE_PERIODS,
    UsageBar,
    UsagePeriod,
    calls_per_step,
    sum_up_calls,
)
from frontdesk.tools.calls import CallResult
from frontdesk.tools.model import CatalogueTool, ReviewStatus
from frontdesk.tools.service import explain_search, get_permitted_tool

CHART_HEIGHT = 100.0
COLUMN_STEP = 20
SHOWN_CALLS = 25
DEFAULT_SPAN = "day"
# Which bars have a label: every six hours, midnight, Monday.
LABELLED_TIMES: Mapping[str, Callable[[datetime], bool]] = {
    "day": lambda at: at.hour % 6 == 0,
    "week": lambda at: at.hour == 0,
    "month": lambda at: at.weekday() == 0,
}
# Beyond this percentage of the width, a label ends at its bar instead of starting there.
NEAR_END_SHARE = 0.85


@dataclass(frozen=True, slots=True)
class ChartColumn:
    """A bar of the chart, from the bottom: failed calls, and successful calls above them."""

    bar: UsageBar
    x: int
    ok: float
    failed: float


@dataclass(frozen=True, slots=True)
class ChartTick:
    """A label below the bars: the positions of its bar and of its text, in percent of the width."""

    at: float
    words_at: float
    words: str

    @property
    def ends(self) -> bool:
        return self.words_at > self.at


@dataclass(frozen=True, slots=True)
class UsageChart:
    """A bar chart. `most` is the value of the highest bar, `calls` the total; the last of the `ticks` comes first."""

    columns: Sequence[ChartColumn]
    ticks: Sequence[ChartTick]
    span: UsagePeriod
    width: int
    most: int
    calls: int
    failed: int


def usage_chart(calls: Sequence[ToolCallRecord], over: str, now: datetime) -> UsageChart:
    """A chart of calls."""
    span = USAGE_PERIODS[over]
    found = calls_per_step(calls, span, now)
    most = max(bar.calls for bar in found)
    scale = CHART_HEIGHT / max(most, 1)
    columns = [
        ChartColumn(bar, number * COLUMN_STEP, round((bar.calls - bar.failed) * scale, 1), round(bar.failed * scale, 1))
        for number, bar in enumerate(found)
    ]
    failed = sum(bar.failed for bar in found)
    ticks = [_tick(bar.start, number / span.count, 1 / span.count) for number, bar in enumerate(found)]
    named = [tick for tick, bar in zip(ticks, found, strict=True) if LABELLED_TIMES[over](bar.start)]
    return UsageChart(
        columns, named[::-1], span, span.count * COLUMN_STEP, most, sum(bar.calls for bar in found), failed
    )


def _tick(at: datetime, begins: float, width: float) -> ChartTick:
    words_at = begins + width if begins > NEAR_END_SHARE else begins
    return ChartTick(
        round(100 * begins, 2), round(100 * words_at, 2), f"{at:%H:%M}" if at.hour else f"{at.day} {at:%b}"
    )


async def show_usage(request: PageRequest) -> PageContent:
    """The latest calls of all tools."""
    over = request.query.get("over", DEFAULT_SPAN)
    over = over if over in USAGE_PERIODS else DEFAULT_SPAN
    calls = await request.app.tools.administration.calls(request.caller)
    start = USAGE_PERIODS[over].start(request.now)
    within = [call for call in calls if call.at >= start]
    every = sum_up_calls(within)
    found = every[:SHOWN_CALLS]
    context = {
        "over": over,
        "spans": USAGE_PERIODS,
        "chart": usage_chart(within, over, request.now),
        "uses": found,
        "more": len(every) - len(found),
        "names": await agent_names(request.app, [one.agent_id for one in found]),
        # There were more calls than were read, so the bars before this one are incomplete.
        "cut_at": calls[-1].at if len(calls) == CALLS_READ else None,
        "tool_at": tool_path,
    }
    return PageContent("tools/use.html", "Use of tools", context)


SHOWN_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
# Limits that keep pages small.
LARGEST_IMAGE = 400_000
MOST_BLOCKS = 50


@dataclass(frozen=True, slots=True)
class AnswerBlock:
    """A part of an answer: a text, or the address of an image."""

    text: str = ""
    picture: str = ""


@dataclass(frozen=True, slots=True)
class AnswerView:
    """The result of a call, and its duration."""

    ok: bool
    blocks: Sequence[AnswerBlock]
    structured: str
    took_us: float


def view_answer(result: CallResult, took_us: float) -> AnswerView:
    blocks = [_view_block(one) for one in result.content[:MOST_BLOCKS]]
    if len(result.content) > MOST_BLOCKS:
        blocks.append(AnswerBlock(f"{len(result.content) - MOST_BLOCKS} more parts are not shown."))
    if not blocks and result.error:
        blocks = [AnswerBlock(result.error)]
    structured = "" if result.structured is None else reveal_hidden(result.structured, 2)
    return AnswerView(result.ok, blocks, structured, took_us)


def _view_block(block: Mapping[str, Any]) -> AnswerBlock:
    text, data, kind = block.get("text"), block.get("data"), block.get("mimeType")
    if block.get("type") == "text" and isinstance(text, str):
        return AnswerBlock(text)
    if kind in SHOWN_IMAGE_TYPES and isinstance(data, str) and len(data) <= LARGEST_IMAGE and BASE64.fullmatch(data):
        return AnswerBlock(picture=f"data:{kind};base64,{data}")
    return AnswerBlock(reveal_hidden(block, 2))


@dataclass(frozen=True, slots=True)
class ToolDifference:
    """The changes of one part of a tool."""

    title: str
    pieces: Sequence[ChangedText]


def tool_differences(tool: CatalogueTool, other: Mapping[str, Any]) -> Sequence[ToolDifference]:
    """The changes from the approved version to the new one. `other` is the version that is not in use."""
    counting = (tool.description, tool.parameters, tool.annotations)
    resting = (
        str(other.get("description", "")),
        _parse_stored(other.get("parameters")),
        _parse_stored(other.get("annotations")),
    )
    before, after = (counting, resting) if tool.standing is ReviewStatus.HELD else (resting, counting)
    pairs = zip(("Description", "Schema", "Annotations"), before, after, strict=True)
    return [
        ToolDifference(title, diff_text(_readable_value(old), _readable_value(new)))
        for title, old, new in pairs
        if old != new
    ]


def _readable_value(value: object) -> str:
    """The text with invisible characters written out, so that people approve what they read."""
    if isinstance(value, str):
        return "\n".join(reveal_hidden(line)[1:-1] for line in value.split("\n"))
    return reveal_hidden(value, 2)


def _parse_stored(stored: object) -> object:
    return parse_json_object(stored) if isinstance(stored, str) else stored


NOT_CALLED: Mapping[str, Any] = {"answer": None, "wrong": ""}
SHOWN_USES = 20


async def show_tool(request: PageRequest) -> PageContent:
    tool = await get_permitted_tool(request.app.tools, request.caller, request.path_params["id"])
    return await _tool_page(request, tool, {}, NOT_CALLED)


async def call_tool(request: PageRequest) -> PageContent:
    """Call the tool with the values of the form. The form keeps its values."""
    tool = await get_permitted_tool(request.app.tools, request.caller, request.path_params["id"])
    started = time.perf_counter_ns()
    try:
        arguments = form_arguments(schema_fields(tool.parameters, {}), request.form)
        caller = caller_for_agent(request, request.form.get("agent", ""))
        result = await request.app.tools.dispatcher.call(caller, tool.id, arguments)
    except Invalid as error:
        return await _tool_page(request, tool, request.form, {"answer": None, "wrong": error.full_message}, 400)
    took_us = (time.perf_counter_ns() - started) / 1000
    return await _tool_page(request, tool, request.form, {"answer": view_answer(result, took_us), "wrong": ""})


async def review_tool(request: PageRequest) -> PageRedirect:
    """Accept a tool's change, or keep the approved version."""
    accept = request.form.get("verdict") == "accept"
    tool = await request.app.tools.administration.review(request.caller, request.form.get("tool", ""), accept=accept)
    return PageRedirect(tool_path(tool.id), f"The change is {'accepted' if accept else 'refused'}.")


async def _tool_page(
    request: PageRequest, tool: CatalogueTool, form: Mapping[str, str], tried: Mapping[str, Any], status: int = 200
) -> PageContent:
    tools, query = request.app.tools, request.query.get("q", "").strip()
    other = await tools.catalogue.other_version(tool.id)
    calls = await tools.administration.calls(request.caller, tool.id)
    used = sum_up_calls(calls)[:SHOWN_USES]
    state = next((state for state in tools.catalogue.servers() if state.name == tool.server), None)
    context = {
        "tool": tool,
        "server": state,
        "schema": reveal_hidden(tool.parameters, 2),
        "annotations": reveal_hidden(tool.annotations, 2) if tool.annotations else "",
        "differences": tool_differences(tool, other) if other is not None else None,
        "fields": schema_fields(tool.parameters, form),
        "form": form,
        "agent": form.get("agent", ""),
        "agents": await list_agent_options(request, form.get("agent", "")),
        "query": query,
        "why": await _explain_match(request, tool, query) if query else None,
        "chart": usage_chart(calls, "week", request.now),
        "uses": used,
        "names": await agent_names(request.app, [one.agent_id for one in used]),
        "tool_at": tool_path,
        "server_at": server_path,
        **tried,
    }
    return PageContent("tools/one.html", tool.name, context, status)


async def _explain_match(request: PageRequest, tool: CatalogueTool, query: str) -> object:
    caller = caller_for_agent(request, request.query.get("agent", ""))
    return await explain_search(
        request.app.tools, caller, query, tool.id, limit=DEFAULT_LIMIT, min_score=DEFAULT_MIN_SCORE
    )
