"""`frontdesk tools bench`: how good search is on one's own tools and queries."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from frontdesk.app import App
from frontdesk.errors import Invalid
from frontdesk.identity.model import Caller
from frontdesk.surfaces.cli.options import Json
from frontdesk.surfaces.cli.running import operator
from frontdesk.surfaces.cli.tools.opening import understand, with_tools
from frontdesk.surfaces.cli.tools.progress import Told
from frontdesk.surfaces.cli.words import table
from frontdesk.tools.finding import Search
from frontdesk.tools.quality import Quality, quality
from frontdesk.tools.search.model import Query

DEPTH = 100
FORM = '{"query": "what somebody wants", "gold": "server::tool"} (or a list of them) on each line'
HEAD = ("search", "NDCG@10", "recall@1", "recall@5", "recall@10", "MRR")


class Asked(BaseModel):
    """A line of the file."""

    query: str
    gold: str | list[str]


@dataclass(frozen=True, slots=True)
class Case:
    """A query and the ids of the tools that answer it."""

    query: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures, and what could not be measured."""

    words: Quality
    shipped: Quality
    queries: int
    unknown: int
    tools: int


def measure(file: Path, /, *, agent: str | None = None, user: str | None = None, as_json: Json = False) -> None:
    """Measure how well search finds your tools, by words alone and with meaning.

    Parameters
    ----------
    file
        Queries with their right tools, one JSON object a line: query, and gold (a tool's id or name, or several).
    agent
        Search as this agent, with what it used before.
    user
        Search as this person.
    as_json
        Print one JSON object.
    """
    given = list(_read(file))

    async def run(app: App) -> Measured:
        await understand(app)
        return await _measured(app, given, operator(agent=agent, user=user))

    found = with_tools(run)
    if as_json:
        print(json.dumps(asdict(found)))
        return
    rows = [("words alone", *_figures(found.words)), ("as shipped", *_figures(found.shipped))]
    print(table(HEAD, rows))
    left_out = f"; {found.unknown} left out, whose tools are not in the catalogue" if found.unknown else ""
    print(f"{found.queries} queries over {found.tools:,} tools{left_out}")


async def _measured(app: App, given: Sequence[Asked], caller: Caller) -> Measured:
    tools, permitted = app.tools, await app.tools.allowed.of(caller)
    cases = [case for asked in given if (case := await _case(app, asked)) is not None]
    if not cases:
        raise Invalid("None of the right tools is in the catalogue; `frontdesk tools list` shows what is")
    words: list[tuple[list[str], frozenset[str]]] = []
    shipped: list[tuple[list[str], frozenset[str]]] = []
    with Told(sys.stderr) as told:
        for number, case in enumerate(cases, 1):
            told.now(f"searching: {number} of {len(cases)}")
            by_words = tools.catalogue.index.search(Query(case.query, limit=DEPTH))
            words.append(([hit.id for hit in by_words], case.gold))
            found = await tools.finder.look(caller, permitted, Search(case.query, limit=DEPTH), remember=False)
            shipped.append(([one.tool.id for one in found.findings], case.gold))
    return Measured(quality(words), quality(shipped), len(cases), len(given) - len(cases), len(tools.catalogue.index))


async def _case(app: App, asked: Asked) -> Case | None:
    names = [asked.gold] if isinstance(asked.gold, str) else asked.gold
    gold = {tool.id for name in names for tool in await app.tools.catalogue.resolve(name)}
    return Case(asked.query, frozenset(gold)) if gold else None


def _read(file: Path) -> Iterator[Asked]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{file} cannot be read: {error}") from error
    for number, text in enumerate(lines, 1):
        try:
            if text.strip():
                yield Asked.model_validate_json(text)
        except ValidationError as error:
            raise Invalid(f"{file}, line {number} is no query with its right tools; write {FORM}") from error


def _figures(found: Quality) -> tuple[str, ...]:
    return tuple(f"{100 * value:.1f}" for value in asdict(found).values())
