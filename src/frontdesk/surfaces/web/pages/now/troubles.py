"""What is wrong with the house, the worst first, each with what to do: pure, from what was found."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from frontdesk.schedule.model import SECOND, us
from frontdesk.surfaces.web.marks import STEPS, short
from frontdesk.surfaces.web.pages.now.model import Facts, Trouble, Work
from frontdesk.tools.catalogue.roster.model import ServerState

LATE_US = 60 * SECOND
VERY_LATE_US = 600 * SECOND
# A server that was not asked for so many rounds is asked no more.
ROUNDS = 4
SHOWN_SERVERS = 5
SAID = 300
GIVEN_UP = "/schedule?show=runs&state=dead"
SERVERS = "/tools/servers"


def troubles(facts: Facts) -> Sequence[Trouble]:
    found = [*_of_database(facts), *_of_host(facts), *_of_work(facts), *_of_tools(facts), *_of_calls(facts)]
    return sorted(found, key=lambda trouble: trouble.kind != "bad")


def sentence(found: Sequence[Trouble]) -> str:
    """The answer to what the page asks."""
    match len(found):
        case 0:
            return "All is well."
        case 1:
            return "One thing needs a look."
        case number:
            return f"{number} things need a look."


def long(microseconds: float) -> str:
    """A length of time in its largest unit: `12 min`."""
    seconds = microseconds / SECOND
    _, unit, name = next(step for step in STEPS if seconds < step[0])
    return f"{round(seconds / unit)} {name}"


def worker_name(owner: str) -> str:
    """A worker as people know it: its machine and its process."""
    machine, _, rest = owner.partition("/")
    return f"{machine}, process {rest.rsplit(':', 2)[-2]}" if rest.count(":") > 1 else owner


def _of_database(facts: Facts) -> Iterator[Trouble]:
    if facts.database_trouble:
        yield Trouble(
            f"The database does not answer: {short(facts.database_trouble, SAID)}",
            "See that it runs and can be reached (FRONTDESK_DATABASE_URL, FRONTDESK_DATA). "
            "Frontdesk goes on by itself once it answers.",
        )
    if facts.write_trouble:
        yield Trouble(
            f"The database {short(facts.write_trouble, SAID)}.",
            "See that its disk has room and that it is not read-only. Until then nothing new is kept.",
        )


def _of_host(facts: Facts) -> Iterator[Trouble]:
    if facts.host.trouble and not facts.database_trouble:
        told = short(facts.host.trouble, SAID)
        yield Trouble(f"The agent host is not reachable: {told}", "Prompts wait until it is back.", link="/agents")
    if facts.host.pretends and not facts.new:
        yield Trouble(
            "No language model is connected, so agents answer with a stand-in.",
            "Set ANTHROPIC_API_KEY or OPENAI_API_KEY and start Frontdesk again.",
            "warn",
            "/start",
            "How to connect one",
        )


def _of_work(facts: Facts) -> Iterator[Trouble]:
    if facts.work is None:
        return
    here, now_us = facts.work.here, us(facts.now)
    if here.autostart and not here.running:
        yield Trouble(
            "The worker of this process does not run, so it delivers no prompts.",
            "Start Frontdesk again; the log says why it stopped.",
            link="/schedule",
            to="Schedule",
        )
    late_us = here.oldest_overdue_us or 0
    if late_us > LATE_US:
        yield _overdue(facts.work, late_us)
    for one in facts.work.others:
        if one.leased_until_us < now_us:
            yield Trouble(
                f"Worker {worker_name(one.owner)} has {_many(one.runs, 'run')} and was not heard of for "
                f"{long(now_us - one.leased_until_us)} longer than it should be.",
                "If it is gone, another worker takes them over by itself; if it hangs, end it.",
                "warn",
                "/schedule",
                "Schedule",
            )
    if here.dead:
        yield Trouble(
            f"{_many(here.dead, 'prompt')} could not be delivered and {'was' if here.dead == 1 else 'were'} given up.",
            f"See why, then have {'it' if here.dead == 1 else 'them'} tried again.",
            "warn",
            GIVEN_UP,
            "Given up",
        )


def _overdue(work: Work, late_us: int) -> Trouble:
    delivers = work.here.running or work.others
    do = (
        f"{'Its agent' if work.here.due == 1 else 'Their agents'} may be busy with earlier prompts; look at what runs."
        if delivers
        else "Nobody delivers: start a worker on the same database."
    )
    return Trouble(
        f"{_many(work.here.due or 0, 'prompt')} overdue, the oldest by {long(late_us)}.",
        do,
        "bad" if late_us > VERY_LATE_US or not delivers else "warn",
        f"/schedule/{work.late[0].schedule_id}" if work.late else "/schedule",
        f"Schedule {work.late[0].schedule_id}" if work.late else "Schedule",
        "" if delivers else "frontdesk worker",
    )


def _of_tools(facts: Facts) -> Iterator[Trouble]:
    failed = [state for state in facts.servers if state.stale]
    for state in failed[:SHOWN_SERVERS]:
        yield Trouble(
            f"Tool server '{state.name}': {short(state.error or 'it does not answer', SAID)}.",
            _its_tools(state),
            "warn",
            f"/tools/server/{state.name}",
            "Its page",
            f"frontdesk tools refresh {state.name}",
        )
    if len(failed) > SHOWN_SERVERS:
        more = _many(len(failed) - SHOWN_SERVERS, "more tool server")
        yield Trouble(f"{more} did not answer.", "", "warn", SERVERS, "All tool servers")
    forgotten = [
        state for state in facts.servers if not state.stale and _forgotten(state, facts.now, facts.asked_every)
    ]
    if forgotten:
        names = ", ".join(state.name for state in forgotten[:SHOWN_SERVERS])
        yield Trouble(
            f"{_many(len(forgotten), 'tool server')} not asked for long: {short(names)}.",
            "What is known of its tools may be out of date; ask it again."
            if len(forgotten) == 1
            else "What is known of their tools may be out of date; ask them again.",
            "warn",
            SERVERS,
            "Tool servers",
            "frontdesk tools refresh",
        )
    if facts.search_trouble:
        yield Trouble(
            f"Search for tools is not whole: {short(facts.search_trouble, SAID)}",
            "Tools are found by their words meanwhile.",
            "warn",
            "/tools",
            "Tools",
        )


def _of_calls(facts: Facts) -> Iterator[Trouble]:
    failures = facts.failures
    if failures.count:
        least = "At least " if failures.at_least else ""
        yield Trouble(
            f"{least}{_many(failures.count, 'call')} failed in the last hour.",
            "The log tells more, by request id.",
            "warn",
            "#failed",
            "Which ones",
        )


def _its_tools(state: ServerState) -> str:
    if state.tools:
        return f"Its {_many(state.tools, 'tool')} stay as last listed, and calls of them may fail. Ask it again:"
    return "Then ask it again:"


def _forgotten(state: ServerState, now: datetime, every: timedelta) -> bool:
    return state.crawled_at is not None and now - state.crawled_at > every * ROUNDS


def _many(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
