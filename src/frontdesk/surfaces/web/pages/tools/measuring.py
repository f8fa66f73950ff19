"""How good search is, measured with one's own queries on the tools that there are."""

from collections.abc import Sequence
from dataclasses import asdict

from frontdesk.errors import Invalid
from frontdesk.surfaces import given
from frontdesk.surfaces.web.model import Asked, Shown
from frontdesk.surfaces.web.pages.tools.common import acting, agents
from frontdesk.tools.measuring import Case, Measured, measure

ARROW = "=>"
MOST = 100
HEAD = ("NDCG@10", "Recall@1", "Recall@5", "Recall@10", "MRR")


async def quality(asked: Asked) -> Shown:
    return await _page(asked, "", "", None)


async def measured(asked: Asked) -> Shown:
    """Search for each line's query, and see where its right tools come out."""
    text, agent = asked.form.get("cases", ""), asked.form.get("agent", "")
    try:
        found = await measure(asked.app.tools, acting(asked, agent), cases(text))
    except Invalid as error:
        return await _page(asked, text, agent, None, str(error), 400)
    return await _page(asked, text, agent, found)


def cases(text: str) -> Sequence[Case]:
    """A query and the tools that answer it on each line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or len(lines) > MOST:
        raise Invalid(f"Write between 1 and {MOST} lines, each as: what somebody wants {ARROW} server::tool")
    return [_case(number, line) for number, line in enumerate(lines, 1)]


def _case(number: int, line: str) -> Case:
    query, _, gold = line.rpartition(ARROW)
    names = given.tool_names(gold)
    if not query.strip() or not names:
        raise Invalid(f"Line {number} has no query or no tool; write: what somebody wants {ARROW} server::tool")
    return Case(query.strip(), names)


async def _page(
    asked: Asked, text: str, agent: str, found: Measured | None, wrong: str = "", status: int = 200
) -> Shown:
    rows = [] if found is None else [("Words alone", asdict(found.words)), ("As shipped", asdict(found.shipped))]
    context = {
        "head": HEAD,
        "rows": [(name, [f"{100 * value:.1f}" for value in figures.values()]) for name, figures in rows],
        "found": found,
        "text": text,
        "agent": agent,
        "agents": await agents(asked, agent),
        "wrong": wrong,
        "progress": asked.app.tools.catalogue.progress(),
    }
    return Shown("tools/quality.html", "Quality of search", context, status)
