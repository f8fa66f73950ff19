"""`frontdesk schedule add`, `update` and `preview`."""

import sys
from typing import Annotated

from frontdesk.app import App
from frontdesk.journal.record import Record
from frontdesk.schedule.asked import Added, Asked, Change, Preview, When
from frontdesk.surfaces.cli.agents import named
from frontdesk.surfaces.cli.options import Flag, Json, Many, Text, up_to
from frontdesk.surfaces.cli.plain import line
from frontdesk.surfaces.cli.running import operator, with_app, with_change
from frontdesk.surfaces.cli.schedule.options import Options, RuleOptions
from frontdesk.surfaces.cli.schedule.telling import tell
from frontdesk.surfaces.cli.words import table
from frontdesk.surfaces.scheduled import Previewed, Scheduled, ways_to_say

WAYS = "WHEN, or one of --time, --cron, or --every"
Count = Annotated[int, up_to(100)]
NO_OPTIONS = Options()
NO_RULE = RuleOptions()


def add(
    agent: str,
    prompt: Text,
    when: Text | None = None,
    /,
    *,
    options: Options = NO_OPTIONS,
    timeline: Flag = False,
    user: str | None = None,
    skip_validation: Flag = False,
    as_json: Json = False,
) -> None:
    """Schedule a prompt for an agent and print the schedule's number.

    frontdesk schedule add Clerk 'Write the report' 'every weekday at 9 Berlin time'

    Parameters
    ----------
    agent
        Its id or name.
    prompt
        What it is told.
    when
        When, in plain words or as a rule: 'in 2 hours', 'every weekday at 9 Berlin time', '0 9 * * MON-FRI'. Or use
        --time, --cron or --every.
    timeline
        For later: there is no timeline yet.
    user
        The person it is for.
    skip_validation
        Do not check that the agent exists; AGENT must be an id then.
    as_json
        Print one JSON object.
    """

    async def make(app: App, record: Record) -> Added:
        agent_id = agent if skip_validation else (await named(app.host, agent)).id
        asked = Asked(
            prompt, agent_id, when=when, timeline=timeline, skip_validation=skip_validation, **options.given()
        )
        record.caller = operator(agent=agent_id, user=user)
        with ways_to_say(WAYS):
            added = await app.schedules.add(operator(user=user), asked)
        record.action += f" {added.schedule.id}"
        return added

    added = with_change("schedule add", make)
    if as_json:
        print(Scheduled.of(added.schedule).model_dump_json())
        return
    print(added.schedule.id)
    print(f"Schedule {added.schedule.id}: {line(added.rule.sentence)}", file=sys.stderr)


def update(
    schedule_id: str,
    when: Text | None = None,
    /,
    *,
    prompt: Text | None = None,
    options: Options = NO_OPTIONS,
    timeline: bool | None = None,
    clear: Many = (),
    as_json: Json = False,
) -> None:
    """Change a schedule in place; what is left out stays as it is.

    Parameters
    ----------
    schedule_id
        Its number, as listed.
    when
        A new rule, in plain words or as a cron rule.
    prompt
        What the agent is told from now on.
    timeline
        For later: there is no timeline yet.
    clear
        Remove this; repeated for several: start-at, end-at, jitter, max-repetitions, max-late, webhook,
        conversation-id.
    as_json
        Print one JSON object.
    """
    cleared = frozenset(name.replace("-", "_") for name in clear)
    change = Change(prompt, when=when, timeline=timeline, clear=cleared, **options.given())
    added = with_change(
        f"schedule update {schedule_id}", lambda app, _: app.schedules.update(operator(), schedule_id, change)
    )
    tell(Scheduled.of(added.schedule), f"Schedule {added.schedule.id}: {added.rule.sentence}", as_json=as_json)


def preview(
    what: Text | None = None, /, *, count: Count = 5, rule: RuleOptions = NO_RULE, as_json: Json = False
) -> None:
    """Show when a schedule, or a rule to try, fires next.

    frontdesk schedule preview 'every weekday at 9 Berlin time'

    Parameters
    ----------
    what
        The number of a schedule, or a rule, in plain words or as one.
    count
        How many times to show.
    as_json
        Print one JSON object.
    """

    async def look(app: App) -> Preview:
        if what is not None and what.isdecimal():
            return await app.schedules.looking.preview(operator(), what, count)
        with ways_to_say(WAYS):
            return await app.schedules.looking.preview_rule(operator(), When(when=what, **rule.given()), count)

    found = with_app(look)
    shape = Previewed.of(found)
    if as_json:
        print(shape.model_dump_json())
        return
    print(line(found.rule.sentence))
    if shape.times:
        print(table((f"in {shape.zone}", "in UTC"), [(one.local, one.utc) for one in shape.times]))
