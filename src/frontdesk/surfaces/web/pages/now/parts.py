"""The parts of the first page that are drawn anew while one looks, each by a template and from what was found."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from frontdesk.journal.model import Entry, Kind, Outcome
from frontdesk.schedule.model import moment
from frontdesk.surfaces.web.pages.now.figures import figures
from frontdesk.surfaces.web.pages.now.model import Facts, Work
from frontdesk.surfaces.web.pages.now.troubles import sentence, troubles, worker_name

# What the schedule says of a run that it gave up.
DEAD = "dead"
PARTS: Mapping[str, str] = {
    "wrong": "now/wrong.html",
    "figures": "now/figures.html",
    "workers": "now/workers.html",
    "failed": "now/failed.html",
    "journal": "now/journal.html",
}


def contexts(facts: Facts) -> dict[str, dict[str, Any]]:
    """What each part is drawn from; one that is the same as before need not be drawn."""
    found = troubles(facts)
    return {
        "wrong": {"troubles": found, "sentence": sentence(found), "new": facts.new},
        "figures": {"figures": figures(facts)},
        "workers": {**_workers(facts.work), "names": facts.names},
        "failed": {"failures": facts.failures, "failed": _listed(facts.failures.rows), "names": facts.names},
        "journal": {"rows": _listed(facts.rows), "names": facts.names},
    }


def place_of(entry: Entry) -> str:
    """The page that tells more of a row, where there is one."""
    match entry.kind:
        case Kind.DELIVERY if entry.request_id:
            return f"/schedule/runs/{quote(entry.request_id, safe='')}"
        case Kind.TOOL:
            return f"/tools/tool/{quote(entry.action, safe='')}"
        case Kind.TURN if entry.agent_id:
            return f"/turns?{urlencode({'agent': entry.agent_id})}"
        case Kind.DENIAL:
            return "/access"
        case _:
            return ""


def why(entry: Entry) -> str:
    """Why it ended so, as far as the journal has it: never what was said, so of some failures only their kind."""
    if entry.kind is Kind.DELIVERY and entry.reason == DEAD:
        return "given up; its page says why"
    if entry.outcome is Outcome.FAILED and not entry.reason:
        return "answered with an error, or was cut off"
    return entry.reason or ""


def _listed(rows: Sequence[tuple[int, Entry]]) -> list[tuple[Entry, str, str]]:
    return [(entry, place_of(entry), why(entry)) for _, entry in rows]


def _workers(work: Work | None) -> dict[str, Any]:
    if work is None:
        return {"worker": None, "last_at": None, "others": (), "late": ()}
    return {
        "worker": work.here,
        "last_at": moment(work.here.last_us) if work.here.last_us is not None else None,
        "others": [(worker_name(one.owner), one.runs, moment(one.leased_until_us)) for one in work.others],
        "late": [(one.schedule_id, one.agent_id, moment(one.fire_us)) for one in work.late],
    }
