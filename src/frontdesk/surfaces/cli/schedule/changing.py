"""`frontdesk schedule cancel`, `pause`, `resume`, `run`, `redrive` and `import`."""

import sys
from dataclasses import asdict
from pathlib import Path

import anyio

from frontdesk.app import App
from frontdesk.errors import ConfigurationError, Unavailable
from frontdesk.schedule import numbers
from frontdesk.schedule.asked import Imported, PastWanted
from frontdesk.schedule.model import Standing
from frontdesk.surfaces.cli.chat.plain import line, plain
from frontdesk.surfaces.cli.schedule.opening import Flag, Json, caller_of, of, shown, tell, with_change
from frontdesk.surfaces.cli.tools.opening import dumped
from frontdesk.surfaces.record import Record
from frontdesk.surfaces.scheduled import Run, Scheduled, Shape

WAIT_SECONDS = 300
POLL_SECONDS = 0.2
LOOKED_AT = 100
# So many looks without anybody taking it are worth a word.
PATIENCE = 15
NOBODY = "Nobody has taken it yet: start a server (frontdesk up) or a worker (frontdesk worker). Still waiting …"
UNDER_WAY = frozenset({Standing.RUNNING, Standing.WAITING})


class Asked(Shape):
    """A run that was asked for."""

    schedule_id: int
    delivery_id: str


def cancel(schedule_id: str, *, as_json: Json = False) -> None:
    """Cancel a schedule for good; one that runs just now runs to its end.

    Parameters
    ----------
    schedule_id
        Its number, as listed.
    as_json
        One JSON object.
    """

    async def change(app: App, _record: Record) -> Scheduled:
        return shown(app, await app.schedules.cancel(caller_of(), schedule_id))

    done = with_change(f"cancel {schedule_id}", change)
    tell(done, f"Schedule {done.id} cancelled", as_json=as_json)


def pause(schedule_id: str, *, as_json: Json = False) -> None:
    """Stop a schedule for a while.

    Parameters
    ----------
    schedule_id
        Its number, as listed.
    as_json
        One JSON object.
    """

    async def change(app: App, _record: Record) -> Scheduled:
        return shown(app, await app.schedules.pause(caller_of(), schedule_id))

    done = with_change(f"pause {schedule_id}", change)
    tell(done, f"Schedule {done.id} paused", as_json=as_json)


def resume(schedule_id: str, *, as_json: Json = False) -> None:
    """Go on with a schedule that was paused; of what fell into the pause only a one-time prompt is made up for.

    Parameters
    ----------
    schedule_id
        Its number, as listed.
    as_json
        One JSON object.
    """
    added = with_change(f"resume {schedule_id}", lambda app, _: app.schedules.resume(caller_of(), schedule_id))
    tell(of(added), f"Schedule {added.schedule.id}: {added.rule.sentence}", as_json=as_json)


def run(schedule_id: str, *, wait: Flag = False, as_json: Json = False) -> None:
    """Run a schedule once now, besides its rule: a server or a worker that is up takes it.

    Parameters
    ----------
    schedule_id
        Its number, as listed.
    wait
        Until it is over, and print what the agent said; exit 1 if it was not delivered.
    as_json
        One JSON object.
    """

    async def start(app: App, _record: Record) -> Asked:
        delivery_id = await app.schedules.run_now(caller_of(), schedule_id)
        return Asked(schedule_id=numbers.schedule_id(schedule_id), delivery_id=delivery_id)

    async def start_and_wait(app: App, record: Record) -> Run:
        return await _over(app, await start(app, record))

    if not wait:
        asked = with_change(f"run {schedule_id}", start)
        tell(asked, f"The next server or worker that is free runs it: {asked.delivery_id}", as_json=as_json)
        return
    ended = with_change(f"run {schedule_id}", start_and_wait)
    print(ended.model_dump_json() if as_json else plain(ended.answer or ended.reason or ended.standing))
    if ended.standing != Standing.DELIVERED:
        sys.exit(1)


def redrive(delivery_id: str, *, as_json: Json = False) -> None:
    """Try a run that was given up again, from its first attempt on.

    Parameters
    ----------
    delivery_id
        The run, as `frontdesk schedule history --standing dead` lists it.
    as_json
        One JSON object.
    """
    past = with_change(f"redrive {delivery_id}", lambda app, _: app.schedules.redrive(caller_of(), delivery_id))
    tell(Run.of(past), f"{past.id} is tried again", as_json=as_json)


def take_over(file: Path | None = None, *, as_json: Json = False) -> None:
    """Take over the schedules of a PromptYoSelf database; those that are here already are left alone.

    Parameters
    ----------
    file
        The database file; PROMPTYOSELF_DB when left out.
    as_json
        One JSON object.
    """

    async def read(app: App, _record: Record) -> Imported:
        path = file or app.settings.promptyoself_db
        if not path:
            raise ConfigurationError("Say which file: frontdesk schedule import FILE, or set PROMPTYOSELF_DB")
        return await app.schedules.import_file(caller_of(), Path(path))

    done = with_change("import", read)
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
            runs = await app.schedules.history(caller_of(), wanted)
            past = next((one for one in runs if one.id == asked.delivery_id), None)
            if past is not None and past.standing not in UNDER_WAY:
                return Run.of(past)
            looks += 1
            if looks == PATIENCE and (past is None or past.started_us is None):
                print(NOBODY, file=sys.stderr, flush=True)
            await anyio.sleep(POLL_SECONDS)
    raise Unavailable(
        f"{asked.delivery_id} is not over after {WAIT_SECONDS} s; is a server or a `frontdesk worker` up? "
        f"frontdesk schedule history {asked.schedule_id}"
    )
