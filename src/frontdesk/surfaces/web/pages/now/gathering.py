"""Asks each room how it is; bounded, and whatever does not answer is told instead of awaited."""

from dataclasses import replace
from datetime import datetime, timedelta

import anyio

from frontdesk.app import NOT_WRITABLE, App
from frontdesk.errors import FrontdeskError, Unavailable
from frontdesk.identity.model import Caller
from frontdesk.loop.access import OFFLINE, ModelAccess
from frontdesk.schedule.asked import Wanted
from frontdesk.surfaces.web.names import names_of
from frontdesk.surfaces.web.pages.now.model import Facts, Host, Work
from frontdesk.surfaces.web.pages.now.pace import lately
from frontdesk.tools.catalogue.servers import Origin

HOUR = timedelta(hours=1)
HOST_SECONDS = 2
ROWS = 15
# So many of the newest rows are gone through for those; the others may all be looks at pages.
AMONG = 2_000
FAILED = 10
LATE = 5
HOLDERS = 50
# So many of the newest calls tell the pace of the last minute.
BEATS = 300


async def look_at_host(app: App) -> Host:
    """Whether the agents' host answers."""
    letta = app.settings.letta_base_url
    model = ModelAccess.of(app.settings).chosen
    known = Host("Letta", letta) if letta else Host("Built in", f"model {model}", pretends=model == OFFLINE)
    try:
        with anyio.fail_after(HOST_SECONDS):
            found = await app.host.list(1)
    except TimeoutError:
        told = f"The agent host does not answer within {HOST_SECONDS} s; check that it runs, and LETTA_BASE_URL"
        return Host(known.name, known.place, told)
    except FrontdeskError as error:
        return Host(known.name, known.place, error.in_full)
    return Host(known.name, known.place, agents=bool(found), pretends=known.pretends)


async def gather(app: App, caller: Caller, host: Host, now: datetime) -> Facts:
    """All that the page shows."""
    trouble = (await app.parts())["database"]
    can_read = trouble == "ok" or trouble.startswith(NOT_WRITABLE)
    if not can_read:
        return _without_database(app, host, now, trouble)
    try:
        found = await _gather(app, caller, host, now)
        return found if trouble == "ok" else replace(found, write_trouble=trouble)
    except Unavailable as error:
        return _without_database(app, host, now, error.in_full)


async def _gather(app: App, caller: Caller, host: Host, now: datetime) -> Facts:
    known = _without_database(app, host, now, "")
    beats = await app.journal.beats(0, BEATS)
    work = await _work(app, caller)
    failures = await app.journal.failures(now - HOUR, FAILED)
    rows = await app.journal.latest(ROWS, AMONG)
    shown = {*(entry.agent_id for _, entry in (*failures.rows, *rows)), *(one.agent_id for one in work.late)}
    return Facts(
        now=now,
        database=known.database,
        host=host,
        servers=known.servers,
        search_trouble=known.search_trouble,
        asked_every=known.asked_every,
        work=work,
        failures=failures,
        rows=rows,
        names={} if host.trouble else await names_of(app, shown),
        pace=lately(beats, now, BEATS),
        new=not (known.servers or host.agents or host.trouble) and not await _has_schedules(app, caller),
    )


async def _work(app: App, caller: Caller) -> Work:
    executing = app.schedules.executing
    here = await executing.executor(caller)
    others = [one for one in await executing.holders(caller, HOLDERS) if one.owner != str(app.worker.owner)]
    return Work(here, others, await executing.late(caller, LATE) if here.oldest_overdue_us else ())


async def _has_schedules(app: App, caller: Caller) -> bool:
    return bool((await app.schedules.looking.list(caller, Wanted(include_cancelled=True, limit=1))).schedules)


def _without_database(app: App, host: Host, now: datetime, trouble: str) -> Facts:
    """What this process knows by itself."""
    catalogue = app.tools.catalogue
    return Facts(
        now=now,
        database="PostgreSQL" if app.database.shared else "SQLite",
        host=host,
        servers=[state for state in catalogue.servers() if state.spec.origin is not Origin.HOST],
        search_trouble=catalogue.progress().trouble,
        asked_every=timedelta(minutes=app.settings.crawl_minutes),
        database_trouble=trouble,
    )
