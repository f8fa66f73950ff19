"""`frontdesk schedule add`, `update` and `preview`."""

import sys

from frontdesk.app import App
from frontdesk.schedule import numbers
from frontdesk.schedule.asked import Added, Asked, Change, Preview
from frontdesk.surfaces.cli.agents import named
from frontdesk.surfaces.cli.chat.plain import line
from frontdesk.surfaces.cli.schedule.opening import Flag, Json, Text, caller_of, of, tell, with_change, with_schedules
from frontdesk.surfaces.cli.schedule.options import Options, RuleOptions
from frontdesk.surfaces.cli.tools.opening import Many
from frontdesk.surfaces.cli.words import table
from frontdesk.surfaces.record import Record
from frontdesk.surfaces.scheduled import Previewed, ways_to_say

WAYS = "WHEN, or one of --time, --cron, or --every"
MOST = 100
NO_OPTIONS = Options()
NO_RULE = RuleOptions()


def add(
    agent: str,
    prompt: Text,
    when: Text | None = None,
    *,
    options: Options = NO_OPTIONS,
    timeline: Flag = False,
    user: str | None = None,
    skip_validation: Flag = False,
    as_json: Json = False,
) -> None:
    """Schedule a prompt for an agent; its number alone goes to standard output.

    frontdesk schedule add Clerk 'Write the report' 'every weekday at 9 Berlin time'

    Parameters
    ----------
    agent
        Its id or name.
    prompt
        What it is told.
    when
        In plain words, or a rule; or say it with --time, --cron or --every.
    timeline
        Put the agent's answer into the user's timeline.
    user
        The person it is for.
    skip_validation
        Do not check that the agent exists; then it is an id.
    as_json
        One JSON object.
    """

    async def make(app: App, record: Record) -> Added:
        agent_id = agent if skip_validation else (await named(app.host, agent)).id
        asked = Asked(
            prompt, agent_id, when=when, timeline=timeline, skip_validation=skip_validation, **options.given()
        )
        record.caller = caller_of(user, agent_id)
        with ways_to_say(WAYS):
            added = await app.schedules.add(caller_of(user), asked)
        record.action += f" {added.schedule.id}"
        return added

    added = with_change("add", make)
    if as_json:
        print(of(added).model_dump_json())
        return
    print(added.schedule.id)
    print(f"Schedule {added.schedule.id}: {line(added.rule.sentence)}", file=sys.stderr)


def update(
    schedule_id: str,
    when: Text | None = None,
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
        A new rule, in plain words or as one.
    prompt
        What the agent is told from now on.
    timeline
        Whether the agent's answer goes into the user's timeline.
    clear
        Take this away; repeated for several: start-at, end-at, jitter, max-repetitions, max-late, webhook,
        conversation-id.
    as_json
        One JSON object.
    """
    cleared = frozenset(name.replace("-", "_") for name in clear)
    change = Change(prompt, when=when, timeline=timeline, clear=cleared, **options.given())
    added = with_change(f"update {schedule_id}", lambda app, _: app.schedules.update(caller_of(), schedule_id, change))
    tell(of(added), f"Schedule {added.schedule.id}: {added.rule.sentence}", as_json=as_json)


def preview(what: Text | None = None, *, count: int = 5, rule: RuleOptions = NO_RULE, as_json: Json = False) -> None:
    """Show when a schedule, or a rule to try, fires next.

    frontdesk schedule preview 'every weekday at 9 Berlin time'

    Parameters
    ----------
    what
        The number of a schedule, or a rule, in plain words or as one.
    count
        How many times to show.
    as_json
        One JSON object.
    """

    times = numbers.within("--count", count, MOST, MOST)

    async def look(app: App) -> Preview:
        if what is not None and what.isdecimal():
            return await app.schedules.preview(caller_of(), what, times)
        with ways_to_say(WAYS):
            return await app.schedules.preview_rule(caller_of(), Asked(when=what, **rule.given()), times)

    found = with_schedules(look)
    shape = Previewed.of(found)
    if as_json:
        print(shape.model_dump_json())
        return
    print(found.rule.sentence)
    if shape.times:
        print(table((f"in {shape.zone}", "in UTC"), [(one.local, one.utc) for one in shape.times]))
