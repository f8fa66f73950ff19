"""`frontdesk schedule list`, `show` and `history`."""

import sys
from typing import Annotated

from cyclopts import Parameter

from frontdesk.app import App
from frontdesk.errors import NotFound
from frontdesk.schedule import numbers
from frontdesk.schedule.asked import PastListed, PastWanted, Wanted
from frontdesk.schedule.forwards.model import DEAD
from frontdesk.schedule.model import Standing
from frontdesk.surfaces.cli.agents import named
from frontdesk.surfaces.cli.options import Json, up_to
from frontdesk.surfaces.cli.plain import line, plain
from frontdesk.surfaces.cli.running import operator, with_app
from frontdesk.surfaces.cli.words import ABSENT, table
from frontdesk.surfaces.scheduled import Run, Scheduled

PROMPT = 40
REASON = 60
Limit = Annotated[int, up_to(1000)]
NONE = "No schedules. Make one: frontdesk schedule add AGENT PROMPT WHEN"


def show_all(
    *,
    agent: str | None = None,
    user: str | None = None,
    all_states: Annotated[bool, Parameter(name="--all", negative=(), show_default=False)] = False,
    after: int = 0,
    limit: Limit = 1000,
    as_json: Json = False,
) -> None:
    """List schedules.

    Parameters
    ----------
    agent
        Only those of this agent, by its id or name.
    user
        Only those of this person.
    all_states
        Also cancelled and finished ones.
    after
        Only those with a higher number.
    limit
        Show at most this many.
    as_json
        Print one JSON object a line.
    """

    async def look(app: App) -> tuple[list[Scheduled], int | None]:
        agent_id = await agent_named(app, agent)
        wanted = Wanted(agent_id, all_states, after_id=after, limit=limit)
        listed = await app.schedules.looking.list(operator(user=user), wanted)
        return [Scheduled.of(one) for one in listed.schedules], listed.next

    found, more = with_app(look)
    if as_json:
        for one in found:
            print(one.model_dump_json())
    else:
        head = ("id", "agent", "rule", "next", "runs", "state", "prompt")
        print(table(head, [_row(one) for one in found]) if found else NONE)
    if more is not None:
        print(f"There are more: --after {more}", file=sys.stderr)


def show(schedule_id: str, /, *, as_json: Json = False) -> None:
    """Show a schedule: its rule, options, state and prompt.

    Parameters
    ----------
    schedule_id
        Its number, as listed.
    as_json
        Print one JSON object.
    """

    async def look(app: App) -> Scheduled:
        return Scheduled.of(await app.schedules.looking.get(operator(), schedule_id))

    found = with_app(look)
    if as_json:
        print(found.model_dump_json())
        return
    facts = found.model_dump(exclude={"rule", "prompt_text"}, exclude_none=True)
    print(line(found.rule.sentence))
    for name, value in facts.items():
        print(f"{name:<18}{line(str(value))}")
    print(f"\n{plain(found.prompt_text)}")


def history(
    schedule_id: str | None = None,
    /,
    *,
    agent: str | None = None,
    standing: Standing | None = None,
    before: str | None = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """Show what became of runs, the newest first.

    Parameters
    ----------
    schedule_id
        Only runs of this schedule.
    agent
        Only runs of this agent, by its id or name.
    standing
        Only runs with this standing; dead ones were given up.
    before
        Only runs due before this time, or the value that the page before ended with.
    limit
        Show at most this many.
    as_json
        Print one JSON object a line.
    """

    async def look(app: App) -> PastListed:
        number = None if schedule_id is None else numbers.schedule_id(schedule_id)
        wanted = PastWanted(number, await agent_named(app, agent), standing, before, limit)
        return await app.schedules.looking.history(operator(), wanted)

    listed = with_app(look)
    runs = [Run.of(past) for past in listed.runs]
    if as_json:
        for run in runs:
            print(run.model_dump_json())
    else:
        head = ("run", "agent", "due", "standing", "attempt", "what came of it")
        print(table(head, [_run(run) for run in runs]) if runs else "No runs yet.")
    if listed.next is not None:
        print(f"There are more: --before {listed.next}", file=sys.stderr)


async def agent_named(app: App, text: str | None) -> str | None:
    """An agent's id; one that the host does not know any more may still have schedules, and goes by its id."""
    if text is None:
        return None
    try:
        return (await named(app.host, text)).id
    except NotFound:
        return text


def _row(one: Scheduled) -> tuple[str, ...]:
    return (
        str(one.id),
        one.agent_id,
        (one.rule.rule or one.schedule_value) + ("" if one.zone == "UTC" else f" ({one.zone})"),
        one.rule.next_local or ABSENT if one.active else ABSENT,
        str(one.repetition_count) + (f" of {one.max_repetitions}" if one.max_repetitions else ""),
        one.state,
        line(one.prompt_text, PROMPT),
    )


def _run(run: Run) -> tuple[str, ...]:
    return (
        run.delivery_id,
        run.agent_id,
        run.intended_at,
        run.standing,
        str(run.attempt),
        line(_came_of(run), REASON),
    )


def _came_of(run: Run) -> str:
    if run.webhook is not None and run.webhook.state == DEAD:
        return f"its answer was not forwarded: {run.webhook.error or 'given up'}"
    return run.reason or run.answer or ABSENT
