"""`frontdesk tools bench`: how good search is on one's own tools and queries."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from pydantic import BaseModel, ValidationError

from frontdesk.app import App
from frontdesk.errors import Invalid
from frontdesk.surfaces.cli.options import Json
from frontdesk.surfaces.cli.running import operator
from frontdesk.surfaces.cli.tools.opening import understand, with_tools
from frontdesk.surfaces.cli.tools.progress import Told
from frontdesk.surfaces.cli.words import table
from frontdesk.tools.measuring import Case, Measured
from frontdesk.tools.measuring import measure as measured
from frontdesk.tools.quality import Quality

FORM = '{"query": "what somebody wants", "gold": "server::tool"} (or a list of them) on each line'
HEAD = ("search", "NDCG@10", "recall@1", "recall@5", "recall@10", "MRR")


class Asked(BaseModel):
    """A line of the file."""

    query: str
    gold: str | list[str]


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
        with Told(sys.stderr) as told:
            return await measured(
                app.tools,
                operator(agent=agent, user=user),
                [_case(asked) for asked in given],
                lambda number, of: told.now(f"searching: {number} of {of}"),
            )

    found = with_tools(run)
    if as_json:
        print(json.dumps(asdict(found)))
        return
    rows = [("words alone", *_figures(found.words)), ("as shipped", *_figures(found.shipped))]
    print(table(HEAD, rows))
    left_out = f"; {found.unknown} left out, whose tools are not in the catalogue" if found.unknown else ""
    print(f"{found.queries} queries over {found.tools:,} tools{left_out}")


def _case(asked: Asked) -> Case:
    return Case(asked.query, [asked.gold] if isinstance(asked.gold, str) else asked.gold)


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
