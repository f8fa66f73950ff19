"""Implements `frontdesk demo`: fills an empty installation with a day of sample data."""

from collections.abc import AsyncGenerator, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import anyio
import httpx2
import structlog

from frontdesk.agents.embedded.host import EmbeddedHost
from frontdesk.agents.host import Agent, AgentHost, MemoryBlock, NewAgent
from frontdesk.agents.turns.model import TurnQuery
from frontdesk.app import App, base_url, running
from frontdesk.errors import Conflict, FrontdeskError, Invalid, Unavailable
from frontdesk.identity.keys import FIRST_KEY_NAME, LOCAL_USER
from frontdesk.identity.model import Caller
from frontdesk.identity.service import Identity
from frontdesk.interfaces.app_runner import configure_quiet_logs, local_caller, record_change, run_with_app
from frontdesk.interfaces.cli.output import printable_line
from frontdesk.interfaces.demo_server import (
    BROKEN,
    DEMO_SERVER,
    MORNING,
    SALES,
    TICKETS,
    WITH_ADA,
    WITH_BRUNO,
    DemoDay,
    demo_server_spec,
    scripted_turns,
)
from frontdesk.interfaces.http.application import build_application
from frontdesk.memory.model import PersonScope, TaskStatus
from frontdesk.memory.service import RecordServices
from frontdesk.schedules.model import RunStatus
from frontdesk.schedules.requests import MAX_LIMIT, ListRuns, ListSchedules, NewSchedule
from frontdesk.settings import Settings
from frontdesk.tools.access import AccessEffect
from frontdesk.tools.administration import ToolAdministration

MOST_COUNTED = 1000
PERSON_TABLES = ("tasks", "memories", "activities", "time_entries")


async def count_records(app: App, person: Caller) -> Mapping[str, int]:
    """The number of records of each kind, up to a thousand; for personal records, those of this person."""
    schedules = await app.schedules.queries.list(person, ListSchedules(include_cancelled=True, limit=MAX_LIMIT))
    kept = await app.memory.people.counts(PersonScope.for_caller(person))
    return {
        "agents": len(await app.host.list(MOST_COUNTED)),
        "tools": sum(server.tools for server in app.tools.catalogue.servers()),
        "turns": len(await app.turns.list(TurnQuery(limit=MOST_COUNTED))),
        "schedules": len(schedules.schedules),
        "keys": len(await app.keys.list()),
        **{name.replace("_", " "): kept[name] for name in PERSON_TABLES},
    }


PROTOCOL_VERSION = "2025-11-25"
ANSWER_SECONDS = 20
ANSWER_POLL_SECONDS = 0.2
MCP_HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": PROTOCOL_VERSION,
}

JsonAnswer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DemoClient:
    """An HTTP client of the installation. Each method returns the JSON of the answer, refusals included."""

    client: httpx2.AsyncClient

    async def mcp(self, tool: str, arguments: Mapping[str, Any] | None = None, **headers: str) -> JsonAnswer:
        """Call one of our MCP tools. Headers have _ for -."""
        params = {"name": tool, "arguments": dict(arguments or {})}
        frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = await self.client.post("/mcp", json=frame, headers={**MCP_HEADERS, **_headers(headers)})
        return _json_answer(answer)

    async def rest(self, method: str, path: str, body: Mapping[str, Any] | None = None, **headers: str) -> JsonAnswer:
        answer = await self.client.request(method, path, json=body, headers=_headers(headers))
        return _json_answer(answer)

    async def talk(self, agent_id: str, user_id: str, messages: tuple[str, ...], **headers: str) -> None:
        """Open a session with an agent, send these messages in order, and wait for each answer."""
        whose = {"userId": user_id}
        opened = await self.rest("POST", "/api/agents/sessions", {"agentId": agent_id, **whose}, **headers)
        session = str(opened["sessionId"])
        for number, message in enumerate(messages, 1):
            sent = {"sessionId": session, "message": message, **whose}
            await self.rest("POST", "/api/agents/messages", sent, **headers)
            await self._wait_for_answers(session, number, headers)

    async def _wait_for_answers(self, session: str, answers: int, headers: Mapping[str, str]) -> None:
        with anyio.move_on_after(ANSWER_SECONDS):
            while True:
                # Sleeps first: most answers are quick, and each poll is an entry in the journal.
                await anyio.sleep(ANSWER_POLL_SECONDS)
                told = await self.rest("GET", f"/api/agents/sessions?sessionId={session}", None, **headers)
                over = [one for one in told.get("messages", ()) if one.get("stopReason")]
                if len(over) >= answers:
                    return


@asynccontextmanager
async def open_demo_client(app: App) -> AsyncGenerator[DemoClient]:
    transport = httpx2.ASGITransport(build_application(app))
    base = f"http://127.0.0.1:{app.settings.port or 3020}"
    async with httpx2.AsyncClient(transport=transport, base_url=base, timeout=ANSWER_SECONDS) as client:
        yield DemoClient(client)


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def _json_answer(answer: httpx2.Response) -> JsonAnswer:
    kind = answer.headers.get("content-type", "")
    found: object = answer.json() if kind.startswith("application/json") else None
    return cast("JsonAnswer", found) if isinstance(found, dict) else {"status": answer.status_code}


RecordFields = Mapping[str, Any]

CATEGORIES: Sequence[RecordFields] = (
    {"name": "Work", "color": "#2457C5"},
    {"name": "Home", "color": "#17693A"},
    {"name": "Travel", "color": "#7A4B00"},
)
# Due in days, at an hour: the task.
TASKS: Sequence[tuple[int, str, RecordFields]] = (
    (1, "12:00", {"title": "Write the offer for Nord", "category": "Work", "priority": "urgent", "tags": ["nord"]}),
    (
        1,
        "17:00",
        {"title": "Review the new contract", "category": "Work", "priority": "high", "estimated_duration": 45},
    ),
    (2, "16:30", {"title": "Call Marta about the workshop", "category": "Work", "priority": "medium"}),
    (-1, "20:00", {"title": "Water the plants", "category": "Home", "priority": "low"}),
    (4, "18:00", {"title": "Find a hotel in Porto", "category": "Travel", "priority": "medium", "tags": ["porto"]}),
    (-1, "18:00", {"title": "Pay the electricity bill", "category": "Home", "priority": "high"}),
)
# (days before the latest such hour, hour, memory)
MEMORIES: Sequence[tuple[int, str, RecordFields]] = (
    (0, "11:20", {"note": "Nord wants the offer as a PDF, with the prices per seat.", "tags": ["nord"]}),
    (0, "09:45", {"note": "Marta prefers calls after four.", "tags": ["people"], "salience_score": 0.6}),
    (
        0,
        "19:30",
        {"note": "The walk along the river was the best part of the day.", "is_highlight": True, "place_name": "Belém"},
    ),
    (0, "17:50", {"note": "Small batches get done; large ones wait.", "memory_type": "insight", "emotion_valence": 3}),
    (2, "15:10", {"note": "The blue notebook has the sketches for the workshop.", "tags": ["workshop"]}),
)
# Start, length in minutes, and the activity.
ACTIVITIES: Sequence[tuple[str, int, RecordFields]] = (
    ("07:00", 40, {"title": "Run along the river", "activity_type": "exercise", "mood_after": 8}),
    ("12:30", 55, {"title": "Lunch with Jo", "activity_type": "socializing", "satisfaction_level": 9}),
    ("21:00", 30, {"title": "Read about queues", "activity_type": "learning", "mood_after": 7}),
)
# (task, days before, start, minutes, description)
TIME_ENTRIES = (
    (0, 2, "10:00", 60, "What Nord asked for"),
    (4, 1, "18:10", 20, "The quarter by the river"),
    (0, 1, "09:10", 95, "First draft"),
    (1, 0, "11:30", 40, "Comments to legal"),
    (0, 0, "09:00", 50, "Prices"),
    (4, 0, "14:00", 20, "Three to choose from"),
)


async def create_records(services: RecordServices, scope: PersonScope, helper: str, day: DemoDay) -> None:
    """Create the records of a person's day; the agent `helper` works for them."""
    await services.people.set_zone(scope, day.zone.key)
    for one in CATEGORIES:
        await services.categories.create(scope, one)
    tasks = await _create_tasks(services, scope, day)
    for days, hour, memory in MEMORIES:
        await services.memories.create(scope, {**memory, "captured_at": _format_time(day.past(hour, 0, days))})
    for hour, minutes, activity in ACTIVITIES:
        began = {"started_at": _format_time(day.past(hour, minutes)), "duration_minutes": minutes}
        await services.activities.create(scope, {**activity, **began})
    for number, days, hour, minutes, note in TIME_ENTRIES:
        start = day.past(hour, minutes, days)
        span = {
            "start_at": _format_time(start),
            "end_at": _format_time(start + timedelta(minutes=minutes)),
            "note": note,
        }
        await services.time_tracking.add(scope, tasks[number], span)
    await services.time_tracking.start(scope, tasks[1], "Second reading")
    work = {"task_id": tasks[4], "agent_id": helper, "objective": "Compare three hotels near the river"}
    await services.work_queue.create(scope, {**work, "task_type": "research"})


async def _create_tasks(services: RecordServices, scope: PersonScope, day: DemoDay) -> Sequence[str]:
    """Create the tasks and return their ids, without the ids of the first one's two subtasks."""
    made: list[str] = []
    for days, hour, one in TASKS:
        made.append((await services.tasks.create(scope, {**one, "due_date": _format_time(day.due(hour, days))})).id)
    for title in ("Gather the prices", "Ask Jo to proofread"):
        await services.tasks.create(scope, {"title": title, "parent_task_id": made[0]})
    await services.tasks.set_status(scope, made[1], TaskStatus.IN_PROGRESS, progress=60)
    await services.tasks.set_status(scope, made[3], TaskStatus.COMPLETED)
    return made


def _format_time(at: datetime) -> str:
    return at.isoformat(timespec="seconds")


QUARTER = timedelta(days=90)
ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DemoKeys:
    """The demo's keys. Their texts are used only while the demo is created."""

    person: str
    agent: str
    reading: str
    revoked: str


async def create_keys(identity: Identity, person: str, agent: Agent) -> DemoKeys:
    _, phone = await identity.create_key(name="Ann's phone", agent_id=None, user_id=person)
    old, _ = await identity.create_key(name="Bruno on the support desk", agent_id=agent.id, user_id=None)
    _, desk = await identity.rotate_key(old.id, ONE_DAY)
    _, report = await identity.create_key(
        name="Weekly report", agent_id=None, user_id=person, scopes=frozenset({"tasks.read"}), lifetime=QUARTER
    )
    lost, laptop = await identity.create_key(name="Lost laptop", agent_id=None, user_id=person)
    await identity.revoke_key(lost.id)
    return DemoKeys(phone, desk, report, laptop)


async def use_keys(demo_client: DemoClient, keys: DemoKeys, agents: tuple[Agent, Agent, Agent]) -> None:
    """Make the calls of a day; the last ones are refused or fail."""
    ada, bruno, cleo = agents
    desk = f"Bearer {keys.agent}"
    for words in ("search support tickets", "send an email to a customer", "book a meeting room"):
        await demo_client.mcp("find_tools", {"query": words}, authorization=desk)
    await demo_client.mcp("call_tool", _call_arguments("search_tickets", words="refund"), authorization=desk)
    mail = _call_arguments("send_email", to="jo@example.com", subject="Your ticket", body="It is solved.")
    await demo_client.mcp("call_tool", mail, authorization=desk)
    for agent in (ada, ada, cleo):
        await demo_client.mcp("whoami", x_agent_id=agent.id)
        await demo_client.mcp("promptyoself_list", x_agent_id=agent.id)
    # Older clients name themselves in the call, and not in a header.
    await demo_client.mcp("whoami", {"agent_id": cleo.id})
    await demo_client.mcp("promptyoself_list", {"agent_id": cleo.id})
    await demo_client.rest("GET", "/api/tasks", authorization=f"Bearer {keys.reading}")
    await demo_client.rest("GET", "/api/memories", authorization=f"Bearer {keys.person}")
    await _make_failing_calls(demo_client, keys, ada, bruno)


async def _make_failing_calls(demo_client: DemoClient, keys: DemoKeys, ada: Agent, bruno: Agent) -> None:
    desk = f"Bearer {keys.agent}"
    await demo_client.mcp("whoami", {"agent_id": ada.id}, authorization=desk, x_agent_id=ada.id)
    await demo_client.rest("POST", "/api/tasks", {"title": "Not allowed"}, authorization=f"Bearer {keys.reading}")
    await demo_client.rest("GET", "/api/tasks", authorization=f"Bearer {keys.revoked}")
    await demo_client.mcp("call_tool", _call_arguments("send_email", to="nobody", subject="Hello"), authorization=desk)
    await demo_client.mcp("call_tool", {"name": "fax", "arguments": {}}, x_agent_id=bruno.id)


def _call_arguments(tool: str, **arguments: str) -> dict[str, object]:
    return {"name": f"{DEMO_SERVER}::{tool}", "arguments": arguments}


async def deny_tool(
    administration: ToolAdministration, operator: Caller, demo_client: DemoClient, agent: Agent
) -> None:
    """Deny an agent the tool that sends mail, and let the agent try to use it."""
    await administration.add_rule(operator, f"agent:{agent.id}", AccessEffect.DENY, f"{DEMO_SERVER}::send_email")
    await demo_client.mcp(
        "call_tool", _call_arguments("send_email", to="ann@example.com", subject="Hi"), x_agent_id=agent.id
    )


RUN_SECONDS = 20
RUN_POLL_SECONDS = 0.05
UNFINISHED = (RunStatus.RUNNING, RunStatus.WAITING)


async def create_schedules(app: App, person: Caller, agents: Sequence[Agent], zone: str) -> Sequence[int]:
    """Create the schedules. Returns the ids of those that should run now."""
    ada, bruno, cleo = (agent.id for agent in agents)
    add = app.schedules.add
    morning = await add(person, NewSchedule(MORNING, agent_id=ada, when="every weekday at 8am", zone=zone))
    tickets = await add(person, NewSchedule(TICKETS, agent_id=bruno, every="2h"))
    sales = await add(person, NewSchedule(SALES, agent_id=cleo, cron="0 17 * * FRI", zone=zone))
    broken = await add(person, NewSchedule(BROKEN, agent_id=cleo, when="every day at 6am", zone=zone, attempts=1))
    await add(person, NewSchedule("Remind Ann of the workshop.", agent_id=ada, when="tomorrow at 9am", zone=zone))
    paused = await add(person, NewSchedule("Check the plants.", agent_id=ada, when="every sunday at 10am", zone=zone))
    await app.schedules.pause(person, paused.schedule.id)
    dropped = await add(person, NewSchedule("Ping the old warehouse.", agent_id=cleo, every="30m"))
    await app.schedules.cancel(person, dropped.schedule.id)
    return [one.schedule.id for one in (morning, tickets, sales, broken)]


async def run_schedules(app: App, person: Caller, numbers: Sequence[int]) -> None:
    """Run these schedules now, and wait for their runs up to a time limit."""
    for number in numbers:
        await app.schedules.run_now(person, number)
    with anyio.move_on_after(RUN_SECONDS):
        for number in numbers:
            await _wait_for_run(app, person, number)


async def _wait_for_run(app: App, person: Caller, number: int) -> None:
    """Wait until the newest run of a schedule has ended."""
    while True:
        found = await app.schedules.queries.history(person, ListRuns(schedule_id=number, limit=1))
        if not any(run.standing in UNFINISHED for run in found.runs):
            return
        await anyio.sleep(RUN_POLL_SECONDS)


DEMO_PERSON = "ann"
HOME_ZONE = ZoneInfo("Europe/Lisbon")
FILL_SECONDS = 90
# None of them names a model: after the demo they use the default model.
DEMO_AGENTS = (
    NewAgent(
        "Ada",
        "Keeps Ann's day in order.",
        blocks=(
            MemoryBlock("persona", "I am Ada. I am brief, and I say what matters first."),
            MemoryBlock("human", "Ann runs a studio."),
        ),
    ),
    NewAgent(
        "Bruno", "Answers customers at the support desk.", blocks=(MemoryBlock("persona", "I am Bruno, and patient."),)
    ),
    NewAgent(
        "Cleo", "Reads figures, and says what they mean.", blocks=(MemoryBlock("persona", "I am Cleo. I count."),)
    ),
)


@dataclass(frozen=True, slots=True)
class SampleData:
    """The number of records of each kind."""

    counts: Mapping[str, int]


async def create_sample_data(app: App, operator: Caller, now: datetime) -> SampleData:
    """Create the data of a day that ends now. It takes some seconds, and at most a minute and a half."""
    await require_empty(app)
    day = DemoDay(now, HOME_ZONE)
    stage = await _require_builtin_host(app).resources()
    try:
        with anyio.fail_after(FILL_SECONDS), stage.models.use_canned_replies(scripted_turns(day)):
            return await _fill_with_workers(app, operator, day)
    except TimeoutError as error:
        raise Unavailable(
            f"The demo was not complete after {FILL_SECONDS} s; the data that exists so far stays"
        ) from error


async def _fill_with_workers(app: App, operator: Caller, day: DemoDay) -> SampleData:
    """Run the background tasks of a server."""
    trouble: FrontdeskError | None = None
    async with running(app):
        # An error in a task group would be raised as a group, which commands cannot show.
        try:
            filled = await _fill(app, operator, day)
        except FrontdeskError as error:
            filled, trouble = SampleData({}), error
        await app.tools.learning.flush()
    if trouble is not None:
        raise trouble
    return filled


async def require_empty(app: App) -> None:
    """Refuse an installation with agents or keys. The key of the first start does not count."""
    _require_builtin_host(app)
    keys = [key for key in await app.keys.list() if (key.name, key.user_id) != (FIRST_KEY_NAME, LOCAL_USER)]
    if keys or await app.host.list(1):
        raise Conflict(
            "This installation has agents or keys already, and the demo would mix with them; "
            "give the demo its own folder: frontdesk demo --data DIR"
        )


def _require_builtin_host(app: App) -> EmbeddedHost:
    if isinstance(app.host, EmbeddedHost):
        return app.host
    raise Invalid("The demo needs the built-in agents; unset LETTA_BASE_URL, and give it a folder: --data DIR")


async def _fill(app: App, operator: Caller, day: DemoDay) -> SampleData:
    person = replace(operator, user_id=DEMO_PERSON)
    ada, bruno, cleo = await _create_agents(app.host)
    await app.tools.administration.add_server(operator, demo_server_spec())
    # Agents have `find_tools` once there are tools to find, and another task may still be reading them.
    while not len(app.tools.catalogue.index):
        await anyio.sleep(ANSWER_POLL_SECONDS)
        await app.tools.catalogue.load()
    await app.tools.catalogue.embed_missing()
    await create_records(app.memory, PersonScope.for_caller(person), ada.id, day)
    keys = await create_keys(app.identity, DEMO_PERSON, bruno)
    due = await create_schedules(app, person, (ada, bruno, cleo), day.zone.key)
    async with open_demo_client(app) as demo_client:
        shown = f"Bearer {keys.person}"
        await demo_client.talk(ada.id, DEMO_PERSON, WITH_ADA, authorization=shown)
        await demo_client.talk(bruno.id, DEMO_PERSON, WITH_BRUNO, authorization=shown)
        await use_keys(demo_client, keys, (ada, bruno, cleo))
        await deny_tool(app.tools.administration, operator, demo_client, cleo)
    await run_schedules(app, person, due)
    return SampleData(await count_records(app, person))


async def _create_agents(host: AgentHost) -> tuple[Agent, Agent, Agent]:
    ada, bruno, cleo = [await host.create(new) for new in DEMO_AGENTS]
    return ada, bruno, cleo


def drop_log_event(expected: str) -> None:
    """Do not log events with this name from now on."""

    def without(_logger: object, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        if event.get("event") == expected:
            raise structlog.DropEvent
        return event

    structlog.configure(processors=[without, *structlog.get_config()["processors"]])


# The demo contains a prompt that is given up.
EXPECTED_EVENT = "prompt_dead"
PAGES_TO_OPEN = (
    ("/", "the state of the installation"),
    ("/agents", "Ada, Bruno and Cleo, with their tools and memory"),
    ("/tools", "search them: weather, invoice, meeting"),
    ("/schedule", "past runs, waiting prompts, and one that was given up"),
    (f"/people/{DEMO_PERSON}", "Ann's tasks, memories and time"),
    ("/turns", "conversations and their tool calls"),
    ("/access", "keys and denied calls"),
)


def fill(*, data: Path | None = None) -> None:
    """Fill an empty installation with a day of sample data, created by running Frontdesk itself. It needs no model.

    Parameters
    ----------
    data
        The folder of a separate installation, on SQLite whatever the settings say. FRONTDESK_DATA when left out.
    """
    settings = configure_quiet_logs(Settings.read(), "error")
    if settings.log_level != "debug":
        drop_log_event(EXPECTED_EVENT)
    if data is not None:
        settings = settings.model_copy(update={"data": data.expanduser().absolute(), "database_url": None})

    async def live(app: App) -> SampleData:
        with record_change(app, "demo"):
            return await create_sample_data(app, local_caller(), datetime.now(UTC))

    found = run_with_app(live, settings, fast=True)
    print(
        "Created a day of sample data: " + ", ".join(f"{number} {name}" for name, number in found.counts.items()) + "."
    )
    if data is None:
        print("Look at it, with frontdesk up:")
    else:
        # The installation of the settings may be running at the same time, so this one gets another port.
        settings = settings.with_values(port=settings.port ^ 1)
        print(
            f"Look at it, with FRONTDESK_DATA={printable_line(str(settings.data))} frontdesk up --port {settings.port}:"
        )
    for path, words in PAGES_TO_OPEN:
        print(f"  {base_url(settings)}{path}  {words}")
