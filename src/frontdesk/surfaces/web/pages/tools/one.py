"""One tool: what it is, how it changed, why it is found, how it is used; and trying it."""

import time
from collections.abc import Mapping
from typing import Any

from frontdesk.errors import Invalid
from frontdesk.surfaces import given
from frontdesk.surfaces.cli.plain import revealed
from frontdesk.surfaces.web.model import Asked, Done, Shown
from frontdesk.surfaces.web.names import names_of
from frontdesk.surfaces.web.pages.tools.answers import answer
from frontdesk.surfaces.web.pages.tools.common import acting, agents, server_at, tool_at
from frontdesk.surfaces.web.pages.tools.differing import differences
from frontdesk.surfaces.web.pages.tools.forms import arguments_of, fields_of
from frontdesk.surfaces.web.pages.tools.using import chart
from frontdesk.tools.looking import explain, shown
from frontdesk.tools.model import CatalogueTool
from frontdesk.tools.trend import uses

NOTHING_YET: Mapping[str, Any] = {"answer": None, "wrong": ""}
USES = 20


async def one(asked: Asked) -> Shown:
    tool = await shown(asked.app.tools, asked.caller, asked.at["id"])
    return await _page(asked, tool, {}, NOTHING_YET)


async def try_it(asked: Asked) -> Shown:
    """Call the tool with what the form says; the form stays filled in, whatever becomes of it."""
    tool = await shown(asked.app.tools, asked.caller, asked.at["id"])
    started = time.perf_counter_ns()
    try:
        arguments = arguments_of(fields_of(tool.parameters, {}), asked.form)
        caller = acting(asked, asked.form.get("agent", ""))
        result = await asked.app.tools.calling.call(caller, tool.id, arguments)
    except Invalid as error:
        return await _page(asked, tool, asked.form, {"answer": None, "wrong": error.in_full}, 400)
    took_us = (time.perf_counter_ns() - started) / 1000
    return await _page(asked, tool, asked.form, {"answer": answer(result, took_us), "wrong": ""})


async def review(asked: Asked) -> Done:
    """Accept how a tool changed, or stay with the version that was approved."""
    accept = asked.form.get("verdict") == "accept"
    tool = await asked.app.tools.house.review(asked.caller, asked.form.get("tool", ""), accept=accept)
    return Done(tool_at(tool.id), f"The change is {'accepted' if accept else 'refused'}.")


async def _page(
    asked: Asked, tool: CatalogueTool, form: Mapping[str, str], tried: Mapping[str, Any], status: int = 200
) -> Shown:
    tools, query = asked.app.tools, asked.query.get("q", "").strip()
    other = await tools.catalogue.other_version(tool.id)
    calls = await tools.house.calls(asked.caller, tool.id)
    used = uses(calls)[:USES]
    state = next((state for state in tools.catalogue.servers() if state.name == tool.server), None)
    context = {
        "tool": tool,
        "server": state,
        "schema": revealed(tool.parameters, 2),
        "annotations": revealed(tool.annotations, 2) if tool.annotations else "",
        "differences": differences(tool, other) if other is not None else None,
        "fields": fields_of(tool.parameters, form),
        "form": form,
        "agent": form.get("agent", ""),
        "agents": await agents(asked, form.get("agent", "")),
        "query": query,
        "why": await _why(asked, tool, query) if query else None,
        "chart": chart(calls, "week", asked.now),
        "uses": used,
        "names": await names_of(asked.app, [one.agent_id for one in used]),
        "tool_at": tool_at,
        "server_at": server_at,
        **tried,
    }
    return Shown("tools/one.html", tool.name, context, status)


async def _why(asked: Asked, tool: CatalogueTool, query: str) -> object:
    caller = acting(asked, asked.query.get("agent", ""))
    return await explain(asked.app.tools, caller, query, tool.id, limit=given.LIMIT, min_score=given.MIN_SCORE)
