"""The numbers of the first page, each with the page where one acts on it: pure."""

from collections.abc import Iterator, Sequence

from frontdesk.schedule.model import moment
from frontdesk.surfaces.web.marks import NOTHING, duration
from frontdesk.surfaces.web.pages.now.model import Facts, Figure, Work
from frontdesk.surfaces.web.pages.now.troubles import GIVEN_UP, LATE_US, SERVERS, VERY_LATE_US, long


def figures(facts: Facts) -> Sequence[Figure]:
    return [*_of_work(facts.work), _failed(facts), _host(facts), _servers(facts), _database(facts), *_of_calls(facts)]


def _of_work(work: Work | None) -> Iterator[Figure]:
    if work is None:
        yield Figure("Workers", NOTHING, "/schedule")
        return
    here = work.here
    seen = (1 if here.running else 0) + len(work.others)
    under_way = (here.in_flight or 0) + sum(one.runs for one in work.others)
    yield Figure("Workers", f"{seen}", "#workers", f"{under_way:,} under way", "" if seen else "warn")
    late_us = here.oldest_overdue_us or 0
    kind = "bad" if late_us > VERY_LATE_US else "warn" if late_us > LATE_US else ""
    yield Figure("Oldest overdue", long(late_us) if late_us else "none", "/schedule", f"{here.due or 0:,} due", kind)
    next_at = moment(here.next_us) if here.next_us is not None else None
    yield Figure(
        "Next prompt", "" if next_at else "none", "/schedule", f"{here.waiting or 0:,} tried again", at=next_at
    )
    yield Figure("Given up", f"{here.dead or 0:,}", GIVEN_UP, "prompts", "warn" if here.dead else "")


def _failed(facts: Facts) -> Figure:
    failures = facts.failures
    count = f"{failures.count:,}{'+' if failures.at_least else ''}"
    return Figure("Failed", count, "#failed", "in the last hour", "warn" if failures.count else "")


def _host(facts: Facts) -> Figure:
    host = facts.host
    return Figure(
        "Agent host", host.name, "/agents", "not reachable" if host.trouble else host.place, _bad(host.trouble)
    )


def _servers(facts: Facts) -> Figure:
    servers = facts.servers
    failed = sum(state.stale for state in servers)
    tools = sum(state.tools for state in servers)
    value = f"{len(servers) - failed} of {len(servers)}" if failed else f"{len(servers)}"
    return Figure("Tool servers", value, SERVERS, "answer" if failed else f"{tools:,} tools", "warn" if failed else "")


def _database(facts: Facts) -> Figure:
    trouble = facts.database_trouble or facts.write_trouble
    told = "does not answer" if facts.database_trouble else "cannot be written to" if trouble else "answers"
    return Figure("Database", facts.database, "", told, _bad(trouble))


def _of_calls(facts: Facts) -> Iterator[Figure]:
    pace = facts.pace
    yield Figure("Calls per second", f"{pace.calls:g}", "#journal", "in the last minute")
    slow = f"95 % within {duration(pace.slow_us)}" if pace.slow_us is not None else "no call in the last minute"
    yield Figure("Latency", duration(pace.median_us), "#journal", slow)


def _bad(trouble: str) -> str:
    return "bad" if trouble else ""
