"""Shows schedules and runs, creates schedules from plain words, and changes them."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import anyio

from frontdesk.errors import Conflict, FrontdeskError, Invalid, NotFound
from frontdesk.interfaces.web.agent_lookup import AgentChoices, list_agent_choices, single_agent_choice
from frontdesk.interfaces.web.model import ActionRoute, PageContent, PageRedirect, PageRequest, PageRoute, StreamRoute
from frontdesk.interfaces.web.pages.schedule_view import (
    SPANS,
    RunRow,
    ScheduleRow,
    ZonedTime,
    describe_schedule,
    draw_timeline,
    find_span,
    preview_times,
    webhook_host,
    zoned_time,
    zoned_time_or_none,
)
from frontdesk.schedules.api_models import explain_missing_rule
from frontdesk.schedules.descriptions import describe_rule
from frontdesk.schedules.model import RunRecord, RunStatus, Schedule, ScheduleState, to_us
from frontdesk.schedules.queries import MAX_DEAD
from frontdesk.schedules.requests import ListRuns, NewSchedule, RuleRequest, parse_choice

ROWS_PER_PAGE = 20
SHOWN_UNFINISHED = 10
SHOW_RUNS = "runs"
ANY_STATE = "any"


@dataclass(frozen=True, slots=True)
class ListSelection:
    """A page of the list: schedules, or ended runs and some running ones, and the position of the next page."""

    schedules: Sequence[Schedule] = ()
    ended: Sequence[RunRecord] = ()
    begun: Sequence[RunRecord] = ()
    following: str | int | None = None


async def select_rows(request: PageRequest) -> ListSelection:
    return await _select_runs(request) if request.query.get("show") == SHOW_RUNS else await _select_schedules(request)


def requested_agent(request: PageRequest) -> str | None:
    return request.query.get("agent") or None


async def mark_of_list(request: PageRequest, chosen: ListSelection) -> str:
    """A checksum that changes with the page or its timeline."""
    begun = sorted(_run_mark(run) for run in chosen.begun)
    seen = ([_schedule_mark(one) for one in chosen.schedules], [_run_mark(run) for run in chosen.ended], begun)
    around = await request.app.schedules.overview.change_mark(request.caller, requested_agent(request))
    return f"{around}.{crc32(repr(seen).encode()):08x}"


def mark_of_schedule(found: Schedule, runs: Sequence[RunRecord]) -> str:
    """A checksum that changes with the schedule or its runs."""
    return f"{crc32(repr((_schedule_mark(found), [_run_mark(run) for run in runs])).encode()):08x}"


def _schedule_mark(one: Schedule) -> tuple[object, ...]:
    return one.id, str(one.state), one.updated_us, one.fired, one.fire_us


def _run_mark(run: RunRecord) -> tuple[str, str]:
    return run.id, repr((str(run.standing), run.attempt, run.forwarded))


async def _select_schedules(request: PageRequest) -> ListSelection:
    overview, agent = request.app.schedules.overview, requested_agent(request)
    state, place = request.query.get("state", ""), request.query.get("after")
    if state in ("", ScheduleState.ACTIVE):
        coming = await overview.upcoming(request.caller, agent, place, ROWS_PER_PAGE)
        return ListSelection(coming.schedules, following=coming.next)
    kind = None if state == ANY_STATE else parse_choice(ScheduleState, "state", state)
    newest = await overview.newest(request.caller, agent, kind, place, ROWS_PER_PAGE)
    return ListSelection(newest.schedules, following=newest.next)


async def _select_runs(request: PageRequest) -> ListSelection:
    overview, agent = request.app.schedules.overview, requested_agent(request)
    state, place = request.query.get("state", ""), request.query.get("after")
    standing = parse_choice(RunStatus, "state", state) if state else None
    ended = await overview.ended(request.caller, agent, standing, place, ROWS_PER_PAGE)
    begun = await overview.under_way(request.caller, agent, SHOWN_UNFINISHED)
    return ListSelection(ended=ended.runs, begun=begun, following=ended.next)


POLL_SECONDS = 1.0
SHOWN_RUNS = 10


async def stream_list(request: PageRequest) -> AsyncGenerator[Mapping[str, Any]]:
    """An event for each change of the requested page of the list."""

    async def look() -> str:
        return await mark_of_list(request, await select_rows(request))

    async for told in _stream_changes(request, look):
        yield told


async def stream_schedule(request: PageRequest) -> AsyncGenerator[Mapping[str, Any]]:
    async def look() -> str:
        looking = request.app.schedules.queries
        found = await looking.get(request.caller, request.path_params["id"])
        return mark_of_schedule(
            found, (await looking.history(request.caller, ListRuns(found.id, limit=SHOWN_RUNS))).runs
        )

    async for told in _stream_changes(request, look):
        yield told


async def _stream_changes(
    request: PageRequest, look: Callable[[], Awaitable[str]]
) -> AsyncGenerator[Mapping[str, Any]]:
    """An event for each change since the state that the page shows. The address names that state."""
    seen = request.query.get("seen", "")
    while True:
        try:
            found = await look()
        except FrontdeskError:
            # The database is unavailable or the schedule was deleted; the reloaded page shows which.
            found = seen
        if found != seen:
            seen = found
            yield {"mark": found}
        await anyio.sleep(POLL_SECONDS)


SHOWN_TIMES = 5


async def show_schedule(request: PageRequest) -> PageContent:
    looking, place = request.app.schedules.queries, request.query.get("before")
    found = await looking.get(request.caller, request.path_params["id"])
    past = await looking.history(request.caller, ListRuns(found.id, before=place or None, limit=SHOWN_RUNS))
    times, unknown = await _next_times(request, found.id)
    what = found.what
    agents = await single_agent_choice(request, what.agent_id)
    zone = what.trigger.zone
    context = {
        "one": ScheduleRow.of(found, agents),
        "what": what,
        "webhook": webhook_host(what.forward.webhook),
        "start": zoned_time_or_none(what.trigger.start_us, zone),
        "end": zoned_time_or_none(what.trigger.end_us, zone),
        "created": zoned_time(found.created_us),
        "updated": zoned_time(found.updated_us),
        "times": times,
        "unknown": unknown,
        "runs": [RunRow.of(one, agents, zone) for one in past.runs],
        "started": place,
        "following": past.next,
        "mark": mark_of_schedule(found, past.runs),
        "host_wrong": agents.wrong,
    }
    return PageContent("schedule/one.html", f"Schedule {found.id}", context)


async def show_run(request: PageRequest) -> PageContent:
    schedules = request.app.schedules
    found = await schedules.queries.get_visible_run(request.caller, request.path_params["id"])
    zones = await schedules.overview.zones(request.caller, [found])
    context = {
        "run": RunRow.of(
            found, await single_agent_choice(request, found.agent_id), zones.get(found.schedule_id, "UTC")
        ),
        "turns": await schedules.overview.turns_of(request.caller, found),
    }
    return PageContent("schedule/run.html", f"Run {found.id}", context)


async def _next_times(request: PageRequest, number: int) -> tuple[list[ZonedTime], str]:
    """The next times, or the problem: the time zone may be unknown here."""
    try:
        return preview_times(await request.app.schedules.queries.preview(request.caller, number, SHOWN_TIMES)), ""
    except Invalid as error:
        return [], error.full_message


STATE_CHOICES = [
    ("", "Active, next first"),
    *(
        (one.value, one.value.capitalize())
        for one in (ScheduleState.PAUSED, ScheduleState.CANCELLED, ScheduleState.ENDED)
    ),
    (ANY_STATE, "All, newest first"),
]
STATUS_CHOICES = [
    ("", "All ended"),
    *(
        (one.value, one.value.capitalize())
        for one in (RunStatus.DELIVERED, RunStatus.DEAD, RunStatus.SKIPPED, RunStatus.CANCELLED)
    ),
]


async def list_schedules(request: PageRequest) -> PageContent:
    agent, agents, chosen = requested_agent(request), await list_agent_choices(request), await select_rows(request)
    runs = request.query.get("show") == SHOW_RUNS
    context = {
        **await _timeline_context(request, agent),
        **(
            await _run_rows(request, chosen, agents)
            if runs
            else {"rows": [ScheduleRow.of(one, agents) for one in chosen.schedules]}
        ),
        "show_runs": runs,
        "agent": agent or "",
        "agents": agents.choices(agent, "All agents"),
        "state": request.query.get("state", ""),
        "states": STATUS_CHOICES if runs else STATE_CHOICES,
        "started": request.query.get("after"),
        "following": chosen.following,
        "host_wrong": agents.wrong,
        "dead": await request.app.schedules.overview.dead(request.caller, agent),
        "most_dead": MAX_DEAD,
        "mark": await mark_of_list(request, chosen),
    }
    return PageContent("schedule/list.html", "Schedule", context)


async def _timeline_context(request: PageRequest, agent: str | None) -> dict[str, Any]:
    span, name, length = find_span(request.query.get("span"))
    now = to_us(request.now)
    around = await request.app.schedules.overview.around(request.caller, agent, now, length)
    return {"strip": draw_timeline(around, now, name, length), "span": span, "spans": SPANS}


async def _run_rows(request: PageRequest, chosen: ListSelection, agents: AgentChoices) -> dict[str, Any]:
    zones = await request.app.schedules.overview.zones(request.caller, [*chosen.ended, *chosen.begun])
    return {
        name: [RunRow.of(one, agents, zones.get(one.schedule_id, "UTC")) for one in runs]
        for name, runs in (("runs", chosen.ended), ("begun", chosen.begun))
    }


WHEN_HINT = "when, such as: every weekday at 9 Berlin time"


async def show_form(request: PageRequest) -> PageContent:
    """The form. htmx requests only the preview while the person types."""
    said = _form_fields(request.query)
    if request.part:
        return PageContent("schedule/preview.html", "Preview", await _preview_context(request, said))
    return await _form_page(request, said)


async def show_preview(request: PageRequest) -> PageContent:
    """The preview without JavaScript. The form keeps its values."""
    return await _form_page(request, _form_fields(request.form))


async def create_schedule(request: PageRequest) -> PageRedirect | PageContent:
    """Create the schedule. Errors are shown in the form."""
    said = _form_fields(request.form)
    wish = NewSchedule(said["prompt"], said["agent"] or None, when=said["when"], zone=said["zone"] or None)
    try:
        with explain_missing_rule(WHEN_HINT):
            added = await request.app.schedules.add(request.caller, wish)
    except (Invalid, Conflict, NotFound) as error:
        return await _form_page(request, said, error.full_message)
    made = added.schedule
    return PageRedirect(f"/schedule/{made.id}", f"Created schedule {made.id}: {describe_schedule(made)}")


def _form_fields(fields: Mapping[str, str]) -> dict[str, str]:
    found = {name: fields.get(name, "").strip() for name in ("when", "zone", "agent", "prompt")}
    # Browsers send line ends as CR LF.
    return {**found, "prompt": found["prompt"].replace("\r\n", "\n")}


async def _form_page(request: PageRequest, form: Mapping[str, str], wrong: str = "") -> PageContent:
    agents = await list_agent_choices(request)
    context = {
        **await _preview_context(request, form),
        "said_fields": form,
        "agents": agents.choices(form["agent"], "Choose an agent"),
        "nobody": not agents.agents and not agents.wrong,
        "host_wrong": agents.wrong,
        "refused": wrong,
    }
    return PageContent("schedule/new.html", "New schedule", context, 400 if wrong else 200)


async def _preview_context(request: PageRequest, form: Mapping[str, str]) -> dict[str, Any]:
    """How the words are understood, or the problem with them. Empty without words."""
    nothing: dict[str, Any] = {"understood": None, "rule": "", "times": [], "zone": "", "unread": ""}
    if not form["when"]:
        return nothing
    try:
        rule = RuleRequest(when=form["when"], zone=form["zone"] or None)
        found = await request.app.schedules.queries.preview_rule(request.caller, rule, SHOWN_TIMES)
    except Invalid as error:
        return {**nothing, "unread": error.full_message}
    rule = found.rule.facts["rule"] or ""
    return {
        **nothing,
        "understood": describe_rule(rule),
        "rule": rule,
        "times": preview_times(found),
        "zone": found.zone,
    }


async def pause_schedule(request: PageRequest) -> PageRedirect:
    found = await request.app.schedules.pause(request.caller, request.path_params["id"])
    return _to_schedule(found.id, f"Schedule {found.id} is paused; it starts no runs until it is resumed")


async def resume_schedule(request: PageRequest) -> PageRedirect:
    added = await request.app.schedules.resume(request.caller, request.path_params["id"])
    return _to_schedule(
        added.schedule.id, f"Schedule {added.schedule.id} continues: {describe_schedule(added.schedule)}"
    )


async def run_schedule_now(request: PageRequest) -> PageRedirect:
    found = await request.app.schedules.queries.get(request.caller, request.path_params["id"])
    run = await request.app.schedules.run_now(request.caller, found.id)
    return _to_schedule(found.id, f"The next free worker runs it: {run}")


async def cancel_schedule(request: PageRequest) -> PageRedirect:
    found = await request.app.schedules.cancel(request.caller, request.path_params["id"])
    return _to_schedule(found.id, f"Schedule {found.id} is cancelled; a running run still completes")


async def redrive_run(request: PageRequest) -> PageRedirect:
    past = await request.app.schedules.redrive(request.caller, request.path_params["id"])
    return _to_schedule(past.schedule_id, f"{past.id} is retried, from its first attempt")


def _to_schedule(schedule_id: int, text: str) -> PageRedirect:
    return PageRedirect(f"/schedule/{schedule_id}", text)


SCHEDULE: tuple[PageRoute | ActionRoute | StreamRoute, ...] = (
    PageRoute("/schedule", list_schedules),
    PageRoute("/schedule/new", show_form),
    ActionRoute("/schedule/new", create_schedule),
    ActionRoute("/schedule/new/preview", show_preview),
    PageRoute("/schedule/runs/{id}", show_run),
    ActionRoute("/schedule/runs/{id}/redrive", redrive_run),
    PageRoute("/schedule/{id}", show_schedule),
    ActionRoute("/schedule/{id}/pause", pause_schedule),
    ActionRoute("/schedule/{id}/resume", resume_schedule),
    ActionRoute("/schedule/{id}/run", run_schedule_now),
    ActionRoute("/schedule/{id}/cancel", cancel_schedule),
    StreamRoute("/live/schedule", stream_list),
    StreamRoute("/live/schedule/{id}", stream_schedule),
)
