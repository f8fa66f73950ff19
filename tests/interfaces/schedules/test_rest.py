"""Tests the schedules API over HTTP, and the schedule tools of a built-in agent."""

import json
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any

import anyio
import httpx2
import pytest

from frontdesk.agents.host import NewAgent, Prompt
from frontdesk.app import App, open_app, running
from frontdesk.identity.model import Caller
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.llm.events import ToolReturn
from frontdesk.schedules.create import NO_TIMELINE
from frontdesk.schedules.model import RunRecord, RunStatus
from frontdesk.schedules.requests import ListRuns
from tests.conftest import settings_with
from tests.interfaces.schedules.conftest import NEXT_YEAR, SECONDS, soon, utc
from tests.requirements import shows
from tests.support.chat import key
from tests.support.scheduling import OPERATOR

LATER = f"{NEXT_YEAR}-12-25T10:00:00Z"
BASE = "http://127.0.0.1:3020/api/v1/schedules"


@pytest.fixture(scope="module")
async def installation(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[App]:
    """An installation that delivers due prompts."""
    data = tmp_path_factory.mktemp("rest") / "data"
    settings = settings_with(FRONTDESK_DATA=data, FRONTDESK_EMBEDDINGS="off", FRONTDESK_SCHEDULE_SHORTEST=1)
    async with open_app(settings) as app, running(app):
        yield app


@pytest.fixture(scope="module")
def asgi(installation: App) -> ASGIApp:
    return build_application(installation)


@pytest.fixture
async def agent(installation: App) -> str:
    return (await installation.host.create(NewAgent("Ada"))).id


@pytest.fixture
async def rest(asgi: ASGIApp) -> AsyncGenerator[httpx2.AsyncClient]:
    async with client_of(asgi) as client:
        yield client


def client_of(asgi: ASGIApp, **headers: str) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(asgi)
    return httpx2.AsyncClient(transport=transport, base_url=BASE, timeout=SECONDS, headers=headers)


async def made(rest: httpx2.AsyncClient, agent: str, **asked: Any) -> dict[str, Any]:
    answer = await rest.post("", json={"agent_id": agent, "prompt": "Daily report", **asked})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def settled(rest: httpx2.AsyncClient, number: int) -> dict[str, Any]:
    """The newest run of a schedule, once it is over."""
    with anyio.fail_after(SECONDS):
        while True:
            runs = (await rest.get(f"/{number}/history")).json()["runs"]
            if runs and runs[0]["standing"] not in ("running", "waiting"):
                return runs[0]
            await anyio.lowlevel.checkpoint()


@shows("SCHEDULE-REST")
async def test_a_schedule_is_made_shown_changed_paused_resumed_and_cancelled(
    rest: httpx2.AsyncClient, agent: str
) -> None:
    one = await made(rest, agent, when="every weekday at 9 Berlin time", misfire="skip", max_late="1h")
    path = f"/{one['id']}"
    assert (one["schedule_value"], one["zone"], one["words"]) == (
        *("0 9 * * MON-FRI", "Europe/Berlin"),
        "every weekday at 9 Berlin time",
    )
    assert (one["misfire"], one["max_late"], one["overlap"], one["state"]) == ("skip", 3600, "queue", "active")
    assert (await rest.get(path)).json() == one
    changed = (await rest.patch(path, json={"prompt": "Weekly", "cron": "0 10 * * MON", "max_late": None})).json()
    assert (changed["prompt_text"], changed["schedule_value"], changed["max_late"]) == ("Weekly", "0 10 * * MON", None)
    assert (changed["misfire"], changed["words"]) == ("skip", None)
    assert (await rest.post(f"{path}/pause")).json()["state"] == "paused"
    assert (await rest.post(f"{path}/resume")).json()["state"] == "active"
    times = (await rest.get(f"{path}/preview", params={"count": 3})).json()["times"]
    assert [utc(at["utc"]).weekday() for at in times] == [0, 0, 0]
    assert (await rest.delete(path)).json()["state"] == "cancelled"
    again = await rest.delete(path)
    assert (again.status_code, again.json()["error"]) == (
        404,
        f"Schedule {one['id']} not found or already cancelled",
    )


async def test_schedules_are_listed_in_pages_by_agent_and_state(rest: httpx2.AsyncClient, agent: str) -> None:
    numbers = [(await made(rest, agent, every="1h"))["id"] for _ in range(3)]
    first = (await rest.get("", params={"agent_id": agent, "limit": 2})).json()
    assert ([one["id"] for one in first["schedules"]], first["next"]) == (numbers[:2], numbers[1])
    rest_of = (await rest.get("", params={"agent_id": agent, "after": first["next"]})).json()
    assert ([one["id"] for one in rest_of["schedules"]], rest_of["next"]) == (numbers[2:], None)
    await rest.delete(f"/{numbers[0]}")
    cancelled = (await rest.get("", params={"agent_id": agent, "state": "cancelled"})).json()["schedules"]
    assert [one["id"] for one in cancelled] == numbers[:1]
    every = (await rest.get("", params={"agent_id": agent, "include_cancelled": True})).json()["schedules"]
    assert [one["id"] for one in every] == numbers


@shows("SCHEDULE-SELF")
async def test_what_is_due_is_delivered_and_its_answer_kept(rest: httpx2.AsyncClient, agent: str) -> None:
    one = await made(rest, agent, time=soon(seconds=1))
    run = await settled(rest, one["id"])
    assert (run["standing"], run["manual"], run["repetition"], run["attempt"]) == ("delivered", False, 1, 1)
    assert run["answer"]
    assert utc(run["intended_at"]) == utc(one["next_run"])
    assert utc(run["intended_at"]) <= utc(run["started_at"]) <= utc(run["ended_at"]) <= datetime.now(UTC)


async def test_a_run_is_asked_for(rest: httpx2.AsyncClient, agent: str) -> None:
    one = await made(rest, agent, cron="0 9 * * *")
    asked = (await rest.post(f"/{one['id']}/run")).json()
    run = await settled(rest, one["id"])
    assert (run["delivery_id"], run["manual"], run["standing"]) == (asked["delivery_id"], True, "delivered")


async def test_runs_come_in_pages(rest: httpx2.AsyncClient, agent: str) -> None:
    one = await made(rest, agent, cron="0 9 * * *")
    asked = [(await rest.post(f"/{one['id']}/run")).json()["delivery_id"] for _ in range(3)]
    first = (await rest.get(f"/{one['id']}/history", params={"limit": 2})).json()
    second = (await rest.get("/runs", params={"agent_id": agent, "before": first["next"]})).json()
    assert [run["delivery_id"] for run in (*first["runs"], *second["runs"])] == asked[::-1]
    assert second["next"] is None


@shows("SCHEDULE-REST")
async def test_a_dead_letter_is_listed_and_redriven(installation: App, rest: httpx2.AsyncClient) -> None:
    agent = (await installation.host.create(NewAgent("Gone"))).id
    one = await made(rest, agent, time=soon(seconds=1))
    await installation.host.delete(agent)
    dead = await settled(rest, one["id"])
    assert (dead["standing"], agent in dead["reason"]) == ("dead", True)
    listed = (await rest.get("/runs", params={"standing": "dead", "agent_id": agent})).json()["runs"]
    assert [run["delivery_id"] for run in listed] == [dead["delivery_id"]]
    tried = await rest.post(f"/runs/{dead['delivery_id']}/redrive")
    assert (tried.status_code, tried.json()["delivery_id"]) == (200, dead["delivery_id"])
    assert (await settled(rest, one["id"]))["standing"] == "dead"
    nothing = await rest.post("/runs/run-1-1/redrive")
    assert nothing.status_code == 404


async def test_a_rule_is_tried(rest: httpx2.AsyncClient) -> None:
    told = (await rest.post("/preview", json={"when": "every weekday at 9 Berlin time", "count": 2})).json()
    assert [at["local"][11:16] for at in told["times"]] == ["09:00", "09:00"]
    assert told["rule"]["rule"] == "cron 0 9 * * MON-FRI"


async def test_a_change_of_nothing_or_to_no_words_at_all_is_refused(rest: httpx2.AsyncClient, agent: str) -> None:
    number = (await made(rest, agent, every="1h30m"))["id"]
    for nothing, said in (({}, "Say what is to be different"), ({"prompt": " "}, "The new prompt is empty")):
        answer = await rest.patch(f"/{number}", json=nothing)
        assert (answer.status_code, answer.json()["error"].startswith(said)) == (400, True)
    assert (await rest.get(f"/{number}")).json()["schedule_value"] == "90m"


async def test_the_scheduler_says_how_it_is_doing(rest: httpx2.AsyncClient) -> None:
    assert (await rest.get("/status")).json()["running"] is True


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"every": "0s"}, "Invalid interval format: 0s. Use formats like '30s', '5m', '1h'"),
        (
            {"cron": "0 9 * "},
            (
                "Invalid cron expression: 0 9 * (it has 3 fields; give five: minute, hour, day of the month, "
                "month, day of the week)"
            ),
        ),
        ({"time": "2025-12-25T10:00:00Z"}, "Scheduled time must be in the future"),
        ({"every": "5m", "max_repetitions": 0}, "max-repetitions must be a positive integer"),
        ({}, "Must specify one of when, time, cron and every"),
        ({"when": " "}, "Must specify one of when, time, cron and every"),
        ({"every": "5m", "prompt": " "}, "Missing required arguments: agent-id and prompt"),
        ({"every": "5m", "max_repetition": 1}, "Validation failed"),
        ({"every": "5m", "prompt": 5}, "Validation failed"),
        ({"every": "5m", "overlap": "maybe"}, "overlap is queue, skip or allow"),
        ({"every": "5m", "timeline": True}, NO_TIMELINE),
    ],
)
async def test_a_mistake_is_told(rest: httpx2.AsyncClient, agent: str, asked: dict[str, Any], said: str) -> None:
    answer = await rest.post("", json={"agent_id": agent, "prompt": "x", **asked})
    assert (answer.status_code, answer.json()["error"]) == (400, said)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/999999999", 404),
        ("PATCH", "/999999999", 404),
        ("DELETE", "/999999999", 404),
        ("POST", "/999999999/pause", 404),
        ("POST", "/999999999/resume", 404),
        ("POST", "/999999999/run", 404),
        ("GET", "/999999999/history", 404),
        ("GET", "/999999999/preview", 404),
        ("GET", "/nine", 400),
        ("GET", "/runs?before=yesterday", 400),
    ],
)
async def test_what_is_not_there_is_said(rest: httpx2.AsyncClient, method: str, path: str, status: int) -> None:
    answer = await rest.request(method, path, json={} if method == "PATCH" else None)
    assert (answer.status_code, "error" in answer.json()) == (status, True)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?limit=0", "limit must be a whole number from 1 to 1000"),
        ("?after=-1", "after must be a whole number from 0 to 2147483647"),
        ("/runs?limit=1001", "limit must be a whole number from 1 to 1000"),
    ],
)
async def test_too_many_are_refused_in_the_form_of_every_endpoint(
    rest: httpx2.AsyncClient, query: str, said: str
) -> None:
    answer = await rest.get(query)
    assert (answer.status_code, answer.json()["error"]) == (400, said)


@shows("SCHEDULE-OWN")
async def test_over_http_too_another_agents_schedule_is_not_there(installation: App, asgi: ASGIApp, agent: str) -> None:
    proof = f"Bearer {await key(installation, 'ann', agent=agent)}"
    async with client_of(asgi, **{"x-agent-id": agent}) as own, client_of(asgi, **{"x-agent-id": "other"}) as other:
        number = (await made(own, agent, every="1h"))["id"]
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/run"), ("GET", "/history"), ("POST", "/pause")):
            assert (await other.request(method, f"/{number}{path}")).status_code == 404
        assert (await other.get("")).json()["schedules"] == []
        for path in ("", "/runs"):
            assert (await other.get(path, params={"agent_id": agent})).status_code == 403
        assert (await own.get(f"/{number}")).status_code == 200
    async with client_of(asgi, authorization=proof) as proven:
        assert (await proven.get(f"/{number}")).json()["id"] == number
        mine = await made(proven, agent, every="1h")
        assert mine["user_id"] == "ann"
    async with client_of(asgi, authorization=f"Bearer {await key(installation, 'bob', agent=agent)}") as bob:
        assert (await bob.get(f"/{mine['id']}")).status_code == 404
    # Once there are keys, a caller who names nobody is not the operator, as in the other tests here.
    for made_here in await installation.keys.list():
        await installation.identity.revoke_key(made_here.id)


async def test_who_is_elsewhere_needs_a_credential(asgi: ASGIApp) -> None:
    async with client_of(asgi, **{"x-forwarded-for": "10.0.0.1"}) as stranger:
        for method, path in (("GET", ""), ("POST", ""), ("GET", "/1"), ("DELETE", "/1"), ("GET", "/runs")):
            assert (await stranger.request(method, path)).status_code == 401


async def test_the_routes_are_described(asgi: ASGIApp) -> None:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(asgi), base_url="http://127.0.0.1:3020") as client:
        paths = (await client.get("/api/openapi.json")).json()["paths"]
    assert {"/v1/schedules", "/v1/schedules/{schedule_id}", "/v1/schedules/runs/{delivery_id}/redrive"} <= set(paths)


async def test_the_schedulers_figures_are_among_the_metrics(installation: App, asgi: ASGIApp) -> None:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(asgi), base_url="http://127.0.0.1:3020") as client:
        told = (await client.get("/metrics")).text
    assert "frontdesk_schedule" in told


# A built-in agent schedules its own prompts, with the tools of all built-in agents


@pytest.fixture(scope="module")
async def builtin_installation(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[App]:
    data = tmp_path_factory.mktemp("own") / "data"
    async with open_app(settings_with(FRONTDESK_DATA=data, FRONTDESK_EMBEDDINGS="off")) as app, running(app):
        yield app


@pytest.fixture
async def builtin_agent(builtin_installation: App) -> str:
    return (await builtin_installation.host.create(NewAgent("Ada"))).id


async def told(installation: App, agent: str, tool: str, user: str | None = None, **arguments: Any) -> str:
    """The result of a tool for the agent, when a person makes it call the tool."""
    script = f"@@{json.dumps([{'tool': tool, 'args': arguments}, {'text': 'done'}])}@@"
    prompt = Prompt(agent, Caller("test", user_id=user), script)
    with anyio.fail_after(SECONDS):
        said = [event async for event in installation.host.send(prompt) if isinstance(event, ToolReturn)]
    return said[0].text


async def delivered(installation: App, agent: str) -> RunRecord:
    with anyio.fail_after(SECONDS):
        while True:
            wanted = ListRuns(agent_id=agent, standing=RunStatus.DELIVERED)
            for past in (await installation.schedules.queries.history(OPERATOR, wanted)).runs:
                return past
            await anyio.lowlevel.checkpoint()


@shows("SCHEDULE-SELF")
async def test_it_schedules_itself_is_prompted_and_answers(builtin_installation: App, builtin_agent: str) -> None:
    said = await told(
        builtin_installation, builtin_agent, "schedule_prompt", prompt="Ping me in two minutes", when="in 1 second"
    )
    assert said.startswith("Scheduled with number ")
    assert "once, UTC, at " in said
    past = await delivered(builtin_installation, builtin_agent)
    assert past.answer


async def test_it_lists_and_cancels_what_it_planned(builtin_installation: App, builtin_agent: str) -> None:
    assert await told(builtin_installation, builtin_agent, "list_schedules") == "Nothing is scheduled."
    said = await told(
        *(builtin_installation, builtin_agent, "schedule_prompt"),
        prompt="Daily report",
        when="every weekday at 9",
        zone="Europe/Berlin",
    )
    number = int(said.split()[3].rstrip(":"))
    listed = await told(builtin_installation, builtin_agent, "list_schedules")
    assert listed.startswith(f"{number}: cron 0 9 * * MON-FRI (every weekday at 09:00), Europe/Berlin; next at ")
    assert listed.endswith("active; Daily report")
    assert (
        await told(builtin_installation, builtin_agent, "cancel_schedule", schedule_id=number)
        == f"Schedule {number} cancelled"
    )
    again = await told(builtin_installation, builtin_agent, "cancel_schedule", schedule_id=number)
    assert again == f"Schedule {number} not found or already cancelled"


async def test_what_it_plans_for_one_person_is_not_there_for_another(
    builtin_installation: App, builtin_agent: str
) -> None:
    said = await told(
        builtin_installation, builtin_agent, "schedule_prompt", "ann", prompt="Ask Ann", when="every day at 9"
    )
    assert said.startswith("Scheduled")
    assert "Ask Ann" in await told(builtin_installation, builtin_agent, "list_schedules", "ann")
    assert await told(builtin_installation, builtin_agent, "list_schedules", "bob") == "Nothing is scheduled."


@shows("KEPT-01")
async def test_what_is_planned_for_nobody_is_not_there_in_a_persons_turn_nor_a_persons_in_nobodys(
    builtin_installation: App, builtin_agent: str
) -> None:
    plans: dict[str | None, str] = {None: "Feed the cat", "local": "Call the vet", "ann": "Ask Ann"}
    numbers: dict[str | None, str] = {}
    for person, prompt in plans.items():
        said = await told(
            builtin_installation, builtin_agent, "schedule_prompt", person, prompt=prompt, when="every day at 9"
        )
        numbers[person] = said.split()[3].rstrip(":")
    # The person at this machine has no name in a terminal and is `local` in an editor.
    own: dict[str | None, set[str | None]] = {
        None: {None, "local"},
        "local": {None, "local"},
        "ann": {"ann"},
        "bob": set(),
    }
    for person, seen in own.items():
        listed = await told(builtin_installation, builtin_agent, "list_schedules", person)
        assert {one for one, prompt in plans.items() if prompt in listed} == seen
        for other in plans.keys() - seen:
            answer = await told(
                builtin_installation, builtin_agent, "cancel_schedule", person, schedule_id=numbers[other]
            )
            assert answer == f"Schedule {numbers[other]} not found or already cancelled"


async def test_a_mistake_is_told_in_words_that_help(builtin_installation: App, builtin_agent: str) -> None:
    said = await told(builtin_installation, builtin_agent, "schedule_prompt", prompt="x", when="sooner or later")
    assert "is no rule that can be read" in said
    assert "prompt" in await told(builtin_installation, builtin_agent, "schedule_prompt", when="in 1 hour")
