"""`frontdesk schedule cancel`, `pause`, `resume`, `run`, `redrive` and `import`."""

import sys
from dataclasses import asdict
from pathlib import Path

import anyio

from frontdesk.app import App
from frontdesk.errors import Invalid, Unavailable
from frontdesk.journal.record import Record
from frontdesk.schedule import numbers
from frontdesk.schedule.asked import Imported, PastWanted
from frontdesk.schedule.model import Standing
from frontdesk.surfaces.cli.options import Flag, Json
from frontdesk.surfaces.cli.plain import line, plain
from frontdesk.surfaces.cli.running import operator, with_change
from frontdesk.surfaces.cli.schedule.telling import tell
from frontdesk.surfaces.cli.words import dumped
from frontdesk.surfaces.scheduled import Run, Scheduled, Shape

WAIT_SECONDS = 300
POLL_SECONDS = 0.2
LOOKED_AT = 100
LOOKS_BEFORE_WORD = 15
NOBODY = "Nobody has taken it yet: start a server (frontdesk up) or a worker (frontdesk worker). Still waiting …"
UNDER_WAY = frozenset({Standing.RUNNING, Standing.WAITING})


class Asked(Shape):
    """A run that was asked for."""

    schedule_id: int
    delivery_id: str


def cancel(schedule_id: str, /, *, as_json: Json = False) -> None:
    """Cancel a schedule for good; a run under way still ends.

    Parameters
    ----------
    schedule_id
        Its number, as listed.
    as_json
        Print one JSON object.
    """

    async def change(app: App, _record: Record) -> Scheduled:
        return Scheduled.of(await app.schedules.cancel(operator(), schedule_id))

    done = with_change(f"schedule cancel {schedule_id}", change)
    tell(done, f"Schedule {done.id} cancelled", as_json=as_json)


def pause(schedule_id: str, /, *, as_json: Json = False) -> None:
    """Stop a schedule for a while.

    Parameters
    ----------
    schedule_id
        Its number, as listed.
    as_json
        Print one JSON object.
    """

    async def change(app: App, _record: Record) -> Scheduled:
        return Scheduled.of(await app.schedules.pause(operator(), schedule_id))

    done = with_change(f"schedule pause {schedule_id}", change)
    tell(done, f"Schedule {done.id} paused", as_json=as_json)


def resume(schedule_id: str, /, *, as_json: Json = False) -> None:
    """Resume a paused schedule. Runs that fell into the pause are skipped; a one-time prompt is delivered now.

    Parameters
    ----------
    schedule_id
        Its number, as listed.
    as_json
        Print one JSON object.
    """
    added = with_change(f"schedule resume {schedule_id}", lambda app, _: app.schedules.resume(operator(), schedule_id))
    tell(Scheduled.of(added.schedule), f"Schedule {added.schedule.id}: {added.rule.sentence}", as_json=as_json)


def run(schedule_id: str, /, *, wait: Flag = False, as_json: Json = False) -> None:
    """Run a schedule once now; its next time stays as it is. Needs a running server or worker.

    Parameters
    ----------
    schedule_id
        Its number, as listed.
    wait
        Wait for the run to end and print the agent's answer; exit 1 if it was not delivered.
    as_json
        Print one JSON object.
    """

    async def start(app: App, _record: Record) -> Asked:
        delivery_id = await app.schedules.run_now(operator(), schedule_id)
        return Asked(schedule_id=numbers.schedule_id(schedule_id), delivery_id=delivery_id)

    async def start_and_wait(app: App, record: Record) -> Run:
        return await _over(app, await start(app, record))

    if not wait:
        asked = with_change(f"schedule run {schedule_id}", start)
        tell(asked, f"The next server or worker that is free runs it: {asked.delivery_id}", as_json=as_json)
        return
    ended = with_change(f"schedule run {schedule_id}", start_and_wait)
    print(ended.model_dump_json() if as_json else plain(ended.answer or ended.reason or ended.standing))
    if ended.standing != Standing.DELIVERED:
        sys.exit(1)


def redrive(run_id: str, /, *, as_json: Json = False) -> None:
    """Try a dead run again, from its first attempt.

    Parameters
    ----------
    run_id
        The run, as `frontdesk schedule history --standing dead` lists it.
    as_json
        Print one JSON object.
    """
    past = with_change(f"schedule redrive {run_id}", lambda app, _: app.schedules.redrive(operator(), run_id))
    tell(Run.of(past), f"{past.id} is tried again", as_json=as_json)


def take_over(file: Path | None = None, /, *, as_json: Json = False) -> None:
    """Copy the schedules of a PromptYoSelf database; ones copied before are left alone.

    Parameters
    ----------
    file
        The database file; PROMPTYOSELF_DB when left out.
    as_json
        Print one JSON object.
    """

    async def read(app: App, _record: Record) -> Imported:
        path = file or app.settings.promptyoself_db
        if not path:
            raise Invalid("Say which file: frontdesk schedule import FILE, or set PROMPTYOSELF_DB")
        return await app.schedules.importing.take_over(operator(), Path(path))

    done = with_change("schedule import", read)
    if as_json:
        print(dumped(asdict(done)))
        return
    print(f"{len(done.made)} taken over from {line(done.path)}; {done.known} were here before")
    for row, why in done.left_out:
        print(f"left out: {line(row)}: {line(why)}")
    for warning in done.warnings:
        print(f"warning: {line(warning)}", file=sys.stderr)


async def _over(app: App, asked: Asked) -> Run:
    """The run once it is settled."""
    wanted, looks = PastWanted(asked.schedule_id, limit=LOOKED_AT), 0
    with anyio.move_on_after(WAIT_SECONDS):
        while True:
            runs = (await app.schedules.looking.history(operator(), wanted)).runs
            past = next((one for one in runs if one.id == asked.delivery_id), None)
            if past is not None and past.standing not in UNDER_WAY:
                return Run.of(past)
            looks += 1
            if looks == LOOKS_BEFORE_WORD and (past is None or past.started_us is None):
                print(NOBODY, file=sys.stderr, flush=True)
            await anyio.sleep(POLL_SECONDS)
    raise Unavailable(
        f"The run {asked.delivery_id} has not ended after {WAIT_SECONDS} s; check that a server or worker is up, and "
        f"see frontdesk schedule history {asked.schedule_id}"
    )
