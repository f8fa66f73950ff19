"""Implements `frontdesk schedule`: create, change, run, list and import schedules, and show their runs."""

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import anyio
from cyclopts import App as Command
from cyclopts import Parameter

from frontdesk.app import App
from frontdesk.errors import Invalid, Unavailable
from frontdesk.interfaces.app_runner import local_caller, run_change, run_with_app
from frontdesk.interfaces.cli.agents import find_agent, find_agent_id
from frontdesk.interfaces.cli.output import (
    EMPTY_CELL,
    AsJson,
    AsJsonLines,
    Flag,
    OptionalText,
    PageLimit,
    Repeated,
    Text,
    dump_json,
    format_table,
    number_up_to,
    print_list,
    print_more,
    printable_line,
    printable_text,
)
from frontdesk.journal.service import CallRecord
from frontdesk.schedules.api_models import (
    PreviewResponse,
    RunListResponse,
    RunResponse,
    RunStartedResponse,
    ScheduleListResponse,
    ScheduleResponse,
    ScheduleResponseModel,
    explain_missing_rule,
)
from frontdesk.schedules.model import Misfire, Overlap, RunStatus
from frontdesk.schedules.requests import (
    ImportResult,
    ListRuns,
    ListSchedules,
    NewSchedule,
    RulePreview,
    RuleRequest,
    SavedSchedule,
    ScheduleChange,
    parse_schedule_id,
)
from frontdesk.schedules.webhook_store import WEBHOOK_DEAD

ScheduleNumber = Annotated[str, Parameter(help="Its number, as listed.")]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOptions:
    """The rule of a schedule."""

    time: Annotated[str | None, Parameter(help="Once, at this time: 2025-12-25T10:00:00Z, or in plain words.")] = None
    cron: Annotated[
        OptionalText, Parameter(help="By a rule of five fields, e.g. '0 9 * * MON-FRI', or @daily and the like.")
    ] = None
    every: Annotated[OptionalText, Parameter(help="At an interval: 30s, 5m, 1h, 2d.")] = None
    zone: Annotated[
        str | None, Parameter(help="The time zone as an IANA name, e.g. Europe/Berlin; UTC when left out.")
    ] = None
    start_at: Annotated[str | None, Parameter(help="Not before this time.")] = None
    end_at: Annotated[str | None, Parameter(help="Not after this time.")] = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions(RuleOptions):
    """The rule of a schedule, and its options."""

    max_repetitions: Annotated[OptionalText, Parameter(help="Stop after this many runs.")] = None
    jitter: Annotated[str | None, Parameter(help="Delay each run by up to this much, e.g. 30s.")] = None
    overlap: Annotated[
        Overlap | None,
        Parameter(
            help="When the run before it has not ended: queue (wait for it), skip (leave it out) or allow (run "
            "beside it). A new schedule has queue."
        ),
    ] = None
    misfire: Annotated[
        Misfire | None,
        Parameter(
            help="Runs that fell due while no worker ran: once (one run for all of them), all (each), skip "
            "(none). A new schedule has once."
        ),
    ] = None
    max_late: Annotated[str | None, Parameter(help="Skip a run that would start later than this, e.g. 1h.")] = None
    attempts: Annotated[
        str | None, Parameter(help="Tries of one run before it is given up, 1 to 100. A new schedule has 10.")
    ] = None
    webhook: Annotated[
        str | None, Parameter(help="URL that the agent's answer is posted to; needs FRONTDESK_WEBHOOK_SECRET.")
    ] = None
    conversation_id: Annotated[
        str | None,
        Parameter(
            name=("--conversation", "--conversation-id"),
            help="The conversation to speak in; the agent's first when left out.",
        ),
    ] = None


WHEN_HINT = "WHEN, or one of --time, --cron, or --every"
PreviewCount = Annotated[int, number_up_to(100)]
NO_OPTIONS = ScheduleOptions()
NO_RULE = RuleOptions()


def add(
    agent: str,
    prompt: Text,
    when: Text | None = None,
    /,
    *,
    options: ScheduleOptions = NO_OPTIONS,
    timeline: Flag = False,
    user: str | None = None,
    skip_validation: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Schedule a prompt for an agent and print the schedule's number.

    frontdesk schedule add Clerk 'Write the report' 'every weekday at 9 Berlin time'

    Parameters
    ----------
    agent
        Its id or name.
    prompt
        The text that the agent receives.
    when
        When, in plain words or as a rule: 'in 2 hours', 'every weekday at 9 Berlin time', '0 9 * * MON-FRI'. Or use
        --time, --cron or --every.
    timeline
        For later: there is no timeline yet.
    user
        The person it is for.
    skip_validation
        Do not check that the agent exists; AGENT must be an id then.
    """

    async def make(app: App, record: CallRecord) -> SavedSchedule:
        agent_id = agent if skip_validation else (await find_agent(app.host, agent)).id
        new = NewSchedule(
            prompt, agent_id, when=when, timeline=timeline, skip_validation=skip_validation, **asdict(options)
        )
        record.caller = local_caller(agent=agent_id, user=user)
        with explain_missing_rule(WHEN_HINT):
            added = await app.schedules.add(local_caller(user=user), new)
        record.action += f" {added.schedule.id}"
        return added

    added = run_change("schedule add", make)
    if as_json:
        print(ScheduleResponse.of(added.schedule).model_dump_json())
        return
    print(added.schedule.id)
    print(_format_saved(added), file=sys.stderr)


def update(
    schedule_id: ScheduleNumber,
    when: Text | None = None,
    /,
    *,
    prompt: Text | None = None,
    options: ScheduleOptions = NO_OPTIONS,
    timeline: bool | None = None,
    clear: Repeated = (),
    as_json: AsJson = False,
) -> None:
    """Change a schedule in place; what is left out stays as it is.

    Parameters
    ----------
    when
        A new rule, in plain words or as a cron rule.
    prompt
        The new text that the agent receives.
    timeline
        For later: there is no timeline yet.
    clear
        Remove this; repeated for several: start-at, end-at, jitter, max-repetitions, max-late, webhook,
        conversation-id.
    """
    cleared = frozenset(name.replace("-", "_") for name in clear)
    change = ScheduleChange(prompt, when=when, timeline=timeline, clear=cleared, **asdict(options))
    added = run_change(
        f"schedule update {schedule_id}", lambda app, _: app.schedules.update(local_caller(), schedule_id, change)
    )
    _print_response(ScheduleResponse.of(added.schedule), _format_saved(added), as_json=as_json)


def preview(
    what: Text | None = None, /, *, count: PreviewCount = 5, rule: RuleOptions = NO_RULE, as_json: AsJson = False
) -> None:
    """Show when a schedule, or a rule to try, fires next.

    frontdesk schedule preview 'every weekday at 9 Berlin time'

    Parameters
    ----------
    what
        The number of a schedule, or a rule, in plain words or as one.
    count
        How many times to show.
    """

    async def look(app: App) -> RulePreview:
        if what is not None and what.isdecimal():
            return await app.schedules.queries.preview(local_caller(), what, count)
        with explain_missing_rule(WHEN_HINT):
            return await app.schedules.queries.preview_rule(
                local_caller(), RuleRequest(when=what, **asdict(rule)), count
            )

    found = PreviewResponse.of(run_with_app(look))
    _print_response(found, found.rule.sentence, as_json=as_json)
    if found.times and not as_json:
        print(format_table((f"in {found.zone}", "in UTC"), [(one.local, one.utc) for one in found.times]))


def _print_response(response: ScheduleResponseModel, text: str, *, as_json: bool) -> None:
    """Print one JSON object, or the text."""
    print(response.model_dump_json() if as_json else printable_line(text))


def _format_saved(saved: SavedSchedule) -> str:
    return f"Schedule {saved.schedule.id}: {printable_line(saved.rule.sentence)}"


PROMPT_LENGTH = 40
REASON_LENGTH = 60
NO_SCHEDULES = "No schedules. Make one: frontdesk schedule add AGENT PROMPT WHEN"


def list_schedules(
    *,
    agent: Annotated[str | None, Parameter(help="Only those of this agent, by its id or name.")] = None,
    user: Annotated[str | None, Parameter(help="Only those of this person.")] = None,
    all_states: Annotated[
        bool, Parameter(name="--all", negative=(), show_default=False, help="Also cancelled and finished ones.")
    ] = False,
    after: Annotated[int, Parameter(help="Only those with a higher number.")] = 0,
    limit: PageLimit = 1000,
    as_json: AsJsonLines = False,
) -> None:
    """List schedules."""

    async def look(app: App) -> ScheduleListResponse:
        wanted = ListSchedules(await find_agent_id(app, agent), all_states, after_id=after, limit=limit)
        return ScheduleListResponse.of(await app.schedules.queries.list(local_caller(user=user), wanted))

    page = run_with_app(look)
    head, to_json = ("id", "agent", "rule", "next", "runs", "state", "prompt"), ScheduleResponse.model_dump_json
    print_list(page.schedules, head, _schedule_row, empty=NO_SCHEDULES, as_json=as_json, to_json=to_json)
    if page.next is not None:
        print_more(f"--after {page.next}")


def show(schedule_id: ScheduleNumber, /, *, as_json: AsJson = False) -> None:
    """Show a schedule: its rule, options, state and prompt."""
    found = ScheduleResponse.of(run_with_app(lambda app: app.schedules.queries.get(local_caller(), schedule_id)))
    _print_response(found, found.rule.sentence, as_json=as_json)
    if not as_json:
        for name, value in found.model_dump(exclude={"rule", "prompt_text"}, exclude_none=True).items():
            print(f"{name:<18}{printable_line(str(value))}")
        print(f"\n{printable_text(found.prompt_text)}")


def history(
    schedule_id: Annotated[str | None, Parameter(help="Only runs of this schedule.")] = None,
    /,
    *,
    agent: Annotated[str | None, Parameter(help="Only runs of this agent, by its id or name.")] = None,
    standing: Annotated[
        RunStatus | None, Parameter(help="Only runs with this standing; dead ones were given up.")
    ] = None,
    before: Annotated[
        str | None, Parameter(help="Only runs due before this time, or the value that the page before ended with.")
    ] = None,
    limit: PageLimit = 50,
    as_json: AsJsonLines = False,
) -> None:
    """Show what became of runs, the newest first."""

    async def look(app: App) -> RunListResponse:
        number = None if schedule_id is None else parse_schedule_id(schedule_id)
        wanted = ListRuns(number, await find_agent_id(app, agent), standing, before, limit)
        return RunListResponse.of(await app.schedules.queries.history(local_caller(), wanted))

    page = run_with_app(look)
    head, to_json = ("run", "agent", "due", "standing", "attempt", "outcome"), RunResponse.model_dump_json
    print_list(page.runs, head, _run_row, empty="No runs yet.", as_json=as_json, to_json=to_json)
    if page.next is not None:
        print_more(f"--before {page.next}")


def _schedule_row(one: ScheduleResponse) -> tuple[str, ...]:
    return (
        str(one.id),
        one.agent_id,
        (one.rule.rule or one.schedule_value) + ("" if one.zone == "UTC" else f" ({one.zone})"),
        one.rule.next_local or EMPTY_CELL if one.active else EMPTY_CELL,
        str(one.repetition_count) + (f" of {one.max_repetitions}" if one.max_repetitions else ""),
        one.state,
        printable_line(one.prompt_text, PROMPT_LENGTH),
    )


def _run_row(run: RunResponse) -> tuple[str, ...]:
    return (
        run.delivery_id,
        run.agent_id,
        run.intended_at,
        run.standing,
        str(run.attempt),
        printable_line(_run_outcome(run), REASON_LENGTH),
    )


def _run_outcome(run: RunResponse) -> str:
    if run.webhook is not None and run.webhook.state == WEBHOOK_DEAD:
        return f"its answer was not forwarded: {run.webhook.error or 'given up'}"
    return run.reason or run.answer or EMPTY_CELL


WAIT_SECONDS = 300
POLL_SECONDS = 0.2
MOST_RUNS_READ = 100
POLLS_BEFORE_HINT = 15
NO_WORKER = "Nobody has taken it yet: start a server (frontdesk up) or a worker (frontdesk worker). Still waiting …"
UNFINISHED = frozenset({RunStatus.RUNNING, RunStatus.WAITING})


def cancel(schedule_id: ScheduleNumber, /, *, as_json: AsJson = False) -> None:
    """Cancel a schedule for good; a run under way still ends."""
    done = run_change(
        f"schedule cancel {schedule_id}", lambda app, _: app.schedules.cancel(local_caller(), schedule_id)
    )
    _print_response(ScheduleResponse.of(done), f"Schedule {done.id} cancelled", as_json=as_json)


def pause(schedule_id: ScheduleNumber, /, *, as_json: AsJson = False) -> None:
    """Stop a schedule for a while."""
    done = run_change(f"schedule pause {schedule_id}", lambda app, _: app.schedules.pause(local_caller(), schedule_id))
    _print_response(ScheduleResponse.of(done), f"Schedule {done.id} paused", as_json=as_json)


def resume(schedule_id: ScheduleNumber, /, *, as_json: AsJson = False) -> None:
    """Resume a paused schedule. Runs that fell into the pause are skipped; a one-time prompt is delivered now."""
    added = run_change(
        f"schedule resume {schedule_id}", lambda app, _: app.schedules.resume(local_caller(), schedule_id)
    )
    _print_response(ScheduleResponse.of(added.schedule), _format_saved(added), as_json=as_json)


def run(schedule_id: ScheduleNumber, /, *, wait: Flag = False, as_json: AsJson = False) -> None:
    """Run a schedule once now; its next time stays as it is. Needs a running server or worker.

    Parameters
    ----------
    wait
        Wait for the run to end and print the agent's answer; exit 1 if it was not delivered.
    """

    async def start(app: App, _record: CallRecord) -> RunStartedResponse:
        delivery_id = await app.schedules.run_now(local_caller(), schedule_id)
        return RunStartedResponse(schedule_id=parse_schedule_id(schedule_id), delivery_id=delivery_id)

    async def start_and_wait(app: App, record: CallRecord) -> RunResponse:
        return await _wait_for_run(app, await start(app, record))

    if not wait:
        started = run_change(f"schedule run {schedule_id}", start)
        _print_response(
            started, f"The next server or worker that is free runs it: {started.delivery_id}", as_json=as_json
        )
        return
    ended = run_change(f"schedule run {schedule_id}", start_and_wait)
    print(ended.model_dump_json() if as_json else printable_text(ended.answer or ended.reason or ended.standing))
    if ended.standing != RunStatus.DELIVERED:
        sys.exit(1)


def redrive(
    run_id: Annotated[str, Parameter(help="The run, as `frontdesk schedule history --standing dead` lists it.")],
    /,
    *,
    as_json: AsJson = False,
) -> None:
    """Try a dead run again, from its first attempt."""
    past = run_change(f"schedule redrive {run_id}", lambda app, _: app.schedules.redrive(local_caller(), run_id))
    _print_response(RunResponse.of(past), f"{past.id} is tried again", as_json=as_json)


def import_schedules(
    file: Annotated[Path | None, Parameter(help="The database file; PROMPTYOSELF_DB when left out.")] = None,
    /,
    *,
    as_json: AsJson = False,
) -> None:
    """Copy the schedules of a PromptYoSelf database; ones copied before are left alone."""

    async def read(app: App, _record: CallRecord) -> ImportResult:
        path = file or app.settings.promptyoself_db
        if not path:
            raise Invalid("Say which file: frontdesk schedule import FILE, or set PROMPTYOSELF_DB")
        return await app.schedules.importer.import_file(local_caller(), Path(path))

    done = run_change("schedule import", read)
    if as_json:
        print(dump_json(asdict(done)))
        return
    print(f"{len(done.made)} taken over from {printable_line(done.path)}; {done.known} were here before")
    for row, why in done.left_out:
        print(f"left out: {printable_line(row)}: {printable_line(why)}")
    for warning in done.warnings:
        print(f"warning: {printable_line(warning)}", file=sys.stderr)


async def _wait_for_run(app: App, started: RunStartedResponse) -> RunResponse:
    """Wait until the run has ended, and return it."""
    wanted, looks = ListRuns(started.schedule_id, limit=MOST_RUNS_READ), 0
    with anyio.move_on_after(WAIT_SECONDS):
        while True:
            runs = (await app.schedules.queries.history(local_caller(), wanted)).runs
            past = next((one for one in runs if one.id == started.delivery_id), None)
            if past is not None and past.standing not in UNFINISHED:
                return RunResponse.of(past)
            looks += 1
            if looks == POLLS_BEFORE_HINT and (past is None or past.started_us is None):
                print(NO_WORKER, file=sys.stderr, flush=True)
            await anyio.sleep(POLL_SECONDS)
    raise Unavailable(
        f"The run {started.delivery_id} has not ended after {WAIT_SECONDS} s; check that a server or worker is up, and "
        f"see frontdesk schedule history {started.schedule_id}"
    )


command = Command(name="schedule")
command.command(list_schedules, name="list")
command.command(add, usage="Usage: frontdesk schedule add [OPTIONS] AGENT PROMPT [WHEN]")
command.command(show)
command.command(update, usage="Usage: frontdesk schedule update [OPTIONS] SCHEDULE_ID [WHEN]")
command.command(preview, usage="Usage: frontdesk schedule preview [OPTIONS] [SCHEDULE_ID | WHEN]")
command.command(pause)
command.command(resume)
command.command(cancel)
command.command(run)
command.command(history, usage="Usage: frontdesk schedule history [OPTIONS] [SCHEDULE_ID]")
command.command(redrive)
command.command(import_schedules, name="import", usage="Usage: frontdesk schedule import [OPTIONS] [FILE]")
