"""Tests the first page: its view of the installation, and the stream that keeps it up to date."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self

import anyio
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from starlette.types import Message, Scope
from typing_extensions import override

from frontdesk.agents.host import NewAgent
from frontdesk.app import App, open_app, running
from frontdesk.identity.model import Caller
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.web import routes
from frontdesk.interfaces.web.model import PageRequest
from frontdesk.interfaces.web.pages.now import StatusUpdate, status_feed_of, stream_status
from frontdesk.interfaces.web.pages.now_report import (
    RATE_SPAN,
    RATE_STEP,
    HostStatus,
    InstallationStatus,
    WorkStatus,
    find_problems,
    past_call_rates,
    recent_call_rate,
    worker_name,
)
from frontdesk.interfaces.web.routes import RETRY_SECONDS, PageStream, stream_events
from frontdesk.journal.model import EntryKind, EntryTiming, JournalEntry, Outcome
from frontdesk.journal.store import MAX_FAILURES_COUNTED
from frontdesk.schedules.delivery_rules import ClaimRequest
from frontdesk.schedules.delivery_store import DeliveryStore
from frontdesk.schedules.model import SECOND, now_us
from frontdesk.settings import Settings
from frontdesk.tools.servers import ServerSpec, ServerState, ServerStatus
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.browsers import Browser, browsing, text_of
from tests.support.postgres import Postgres, Ready
from tests.support.schedules.installation import once
from tests.support.waiting import until

# The first page: the state of the installation, problems first, and live updates


OPERATOR = Caller("test", local=True, any_agent=True)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOSTILE = '<script>alert("x")</script>\u202egnp.exe'
MINUTE = 60 * SECOND
# The journal's rows of the day, and the lease of a worker elsewhere.
ELSEWHERE = "desk-7/boot/pid:[4026531836]:4711:token"


@pytest.fixture
async def app_on_each_database(settings: Settings) -> AsyncGenerator[App]:
    """The services, on both databases."""
    async with open_app(settings) as opened:
        yield opened


@pytest.fixture
async def web(app_on_each_database: App) -> AsyncGenerator[Browser]:
    async with browsing(build_application(app_on_each_database)) as browser:
        yield browser


def asked(app: App) -> PageRequest:
    return PageRequest(app, OPERATOR, datetime.now(UTC))


async def note(app: App, *entries: JournalEntry) -> None:
    for entry in entries:
        app.journal.record(entry)
    await app.journal.flush()


def failed(action: str = "whoami", ago: timedelta = timedelta(minutes=5), **more: Any) -> JournalEntry:
    entry = JournalEntry(datetime.now(UTC) - ago, EntryKind.CALL, "mcp", action, Outcome.FAILED, 1500, "Unavailable")
    return replace(entry, **more)


async def overdue(app: App, agent: str, by_us: int) -> int:
    due = now_us() - by_us
    return (await app.schedules.store.add(once(agent, due), due, due)).id


@shows("WEB-NOW")
async def test_a_new_installation_is_well_and_leads_to_the_first_steps(app_on_each_database: App) -> None:
    async with running(app_on_each_database), browsing(build_application(app_on_each_database)) as web:
        html = await web.get("/")
    assert "All is well." in text_of(html)
    assert "This installation is new" in html
    assert 'href="/start"' in html
    assert "Nothing failed in the last hour." in html


async def test_an_installation_with_an_agent_is_not_new(app_on_each_database: App, web: Browser) -> None:
    assert "This installation is new" in await web.get("/")
    await app_on_each_database.host.create(NewAgent("Ada"))
    html = await web.get("/")
    assert "This installation is new" not in html
    assert "No language model is connected" in html


async def test_a_worker_that_should_run_and_does_not_is_told_first(web: Browser) -> None:
    said = text_of(await web.get("/"))
    assert said.index("The worker of this process does not run") < said.index("Oldest overdue")


async def test_what_is_overdue_is_told_with_its_age_and_leads_to_the_oldest(
    app_on_each_database: App, web: Browser
) -> None:
    oldest = await overdue(app_on_each_database, "agent-ada", 30 * MINUTE)
    await overdue(app_on_each_database, "agent-bob", 2 * MINUTE)
    html = await web.get("/")
    said = text_of(html)
    assert "2 prompts overdue, the oldest by 30 min." in said
    assert "No worker is running" in said
    assert "frontdesk worker" in said
    assert f'<a href="/schedule/{oldest}">' in html
    assert '<a href="/agents/agent-ada" title="agent-ada">' in html


async def test_workers_of_other_processes_are_seen_by_what_they_hold(app_on_each_database: App, web: Browser) -> None:
    await overdue(app_on_each_database, "agent-ada", MINUTE)
    store = DeliveryStore(app_on_each_database.database, ELSEWHERE, 60 * SECOND)
    assert len(await store.claim(ClaimRequest(5))) == 1
    assert "desk-7, process 4711" in text_of(await web.get("/"))


async def test_a_worker_that_let_its_lease_run_out_needs_a_look(app_on_each_database: App, web: Browser) -> None:
    await overdue(app_on_each_database, "agent-ada", 10 * MINUTE)
    long_ago = now_us() - 5 * MINUTE
    await DeliveryStore(app_on_each_database.database, ELSEWHERE, 60 * SECOND, lambda: long_ago).claim(ClaimRequest(5))
    said = text_of(await web.get("/"))
    assert (
        "Worker desk-7, process 4711 has 1 run and has sent no sign of life for 4 min longer than it should be." in said
    )


@shows("WEB-NOW")
async def test_what_failed_in_the_last_hour_is_counted_and_listed(app_on_each_database: App, web: Browser) -> None:
    run = failed("deliver", kind=EntryKind.DELIVERY, surface="schedule", request_id="run-7-1000", agent_id="agent-ada")
    await note(app_on_each_database, failed("too_old", timedelta(hours=2)), run, failed("recall"))
    html = await web.get("/")
    listed = html[html.index('id="failed"') : html.index('id="journal"')]
    assert "2 calls failed in the last hour." in text_of(html)
    assert "recall" in listed
    assert "too_old" not in listed
    assert 'href="/schedule/runs/run-7-1000"' in listed
    assert 'href="/agents/agent-ada"' in listed


async def test_looks_at_pages_are_not_what_happened_but_what_is_done_on_them_is(
    app_on_each_database: App, web: Browser
) -> None:
    await note(app_on_each_database, failed("recall", surface="mcp", outcome=Outcome.OK, reason=None))
    for _ in range(20):
        await web.get("/agents")
    await web.post("/tools/servers/refresh")
    await app_on_each_database.journal.flush()
    html = await web.get("/")
    listed = text_of(html[html.index('id="journal"') :])
    assert "mcp recall" in listed
    assert "web POST /tools/servers/refresh" in listed
    assert "GET /" not in listed
    assert [entry.action for _, entry in await app_on_each_database.journal.latest(5, 2)] == [
        "POST /tools/servers/refresh"
    ], "only the newest rows are gone through"


async def test_a_request_that_fails_at_two_endpoints_failed_once(app_on_each_database: App, web: Browser) -> None:
    inner = failed("shop::send_mail", surface="tools", kind=EntryKind.TOOL, reason=None, request_id="one")
    at_endpoint = failed("call_tool", reason=None, request_id="one")
    named = replace(at_endpoint, reason="Unavailable", request_id="two")
    nameless = [failed("alone"), failed("alone")]
    await note(app_on_each_database, inner, at_endpoint, replace(inner, request_id="two"), named, *nameless)
    found = await app_on_each_database.journal.failures(datetime.now(UTC) - timedelta(hours=1), 10)
    assert (found.count, found.at_least) == (4, False)
    told = [(entry.action, entry.reason) for _, entry in found.rows]
    assert told == [
        ("alone", "Unavailable"),
        ("alone", "Unavailable"),
        ("call_tool", "Unavailable"),
        ("shop::send_mail", None),
    ]
    assert "4 calls failed in the last hour." in text_of(await web.get("/"))


async def test_a_failure_is_told_with_what_the_journal_has_of_its_reason(
    app_on_each_database: App, web: Browser
) -> None:
    given_up = failed("deliver", kind=EntryKind.DELIVERY, surface="schedule", reason="dead", request_id="run-1")
    await note(
        app_on_each_database, given_up, failed("shop::send_mail", kind=EntryKind.TOOL, reason=None), failed("recall")
    )
    html = await web.get("/")
    listed = text_of(html[html.index('id="failed"') : html.index('id="journal"')])
    assert "failed given up; its page says why" in listed
    assert "failed answered with an error, or was cut off" in listed
    assert "failed Unavailable" in listed


async def test_agents_go_by_their_names_with_the_id_behind(app_on_each_database: App, web: Browser) -> None:
    ada = await app_on_each_database.host.create(NewAgent("Ada"))
    await note(app_on_each_database, failed(agent_id=ada.id), failed(agent_id="agent-gone"))
    html = await web.get("/")
    assert f'<a href="/agents/{ada.id}" title="{ada.id}"><bdi>Ada</bdi></a>' in html
    assert 'title="agent-gone"><bdi>agent-gone</bdi>' in html


async def test_of_very_many_failures_only_so_many_are_counted(app_on_each_database: App) -> None:
    await note(app_on_each_database, *(failed() for _ in range(MAX_FAILURES_COUNTED + 1)))
    found = await app_on_each_database.journal.failures(datetime.now(UTC) - timedelta(hours=1), 3)
    assert (found.count, found.at_least, len(found.rows)) == (MAX_FAILURES_COUNTED, True, 3)


async def test_nothing_that_others_wrote_comes_alive(app_on_each_database: App, web: Browser) -> None:
    await note(
        app_on_each_database,
        failed(HOSTILE, reason=HOSTILE, request_id=HOSTILE),
        failed(f"a::{HOSTILE}", kind=EntryKind.TOOL),
    )
    html = await web.get("/")
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert" in html
    assert html.count("\u202e") == html.count("&lt;script&gt;alert(&#34;x&#34;)&lt;/script&gt;\u202e")


async def test_a_tool_server_that_does_not_answer_is_told_with_what_to_do(
    app_on_each_database: App, web: Browser
) -> None:
    await app_on_each_database.tools.catalogue.add(ServerSpec("weather", url="http://127.0.0.1:9/mcp"))
    html = await web.get("/")
    assert "Tool server 'weather'" in text_of(html)
    assert "frontdesk tools refresh weather" in html
    assert 'href="/tools/server/weather"' in html
    assert "0 of 1" in html


async def test_a_letta_server_that_is_away_is_told(tmp_path: Path, ready: Ready) -> None:
    settings = settings_with(FRONTDESK_DATA=ready.in_folder(tmp_path / "data"), LETTA_BASE_URL="http://127.0.0.1:9")
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        said = text_of(await web.get("/"))
    assert "The agent host is not reachable: The Letta server at http://127.0.0.1:9" in said
    assert "This installation is new" not in said


async def test_a_database_that_is_away_is_what_the_page_says(tmp_path: Path, ready: Ready, postgres: Postgres) -> None:
    url = ready.on(postgres)
    async with open_app(settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=url)) as app:
        async with browsing(build_application(app)) as web:
            await web.get("/")
            with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
                connection.execute(f"DROP DATABASE {conninfo_to_dict(url)['dbname']} WITH (FORCE)".encode())
            said = text_of(await web.get("/", 503))
        assert "One problem needs attention." in said
        assert "The database does not answer" in said
        [told] = [
            part.html for name, part in (await status_feed_of(app).next(asked(app))).parts.items() if name == "wrong"
        ]
        assert "The database does not answer" in told


@shows("WEB-NOW")
async def test_all_open_pages_are_told_what_one_of_them_found_out(app_on_each_database: App) -> None:
    found: list[StatusUpdate] = []

    async def listen() -> None:
        found.append(await status_feed_of(app_on_each_database).next(asked(app_on_each_database)))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(listen)
    assert len({id(told) for told in found}) == 1
    assert found[0].number == 1


async def test_who_listens_hears_everything_first_and_then_what_is_new(app_on_each_database: App) -> None:
    await note(app_on_each_database, failed("before"))
    async with aclosing(stream_status(asked(app_on_each_database))) as heard:
        first = await anext(heard)
    pulse = status_feed_of(app_on_each_database)
    assert set(first["parts"]) == {"wrong", "figures", "workers", "failed", "journal"}
    assert (len(first["points"]), first["anew"]) == (RATE_SPAN // RATE_STEP, True)

    await note(app_on_each_database, failed("after"), failed("after"))
    second = await _next(app_on_each_database)
    news = second.changes_since(1)
    assert set(news["parts"]) == {"wrong", "figures", "failed", "journal"}
    assert news["parts"]["journal"].count("after") == 2
    [[_, calls, wrong, median, _]] = news["points"]
    assert calls == wrong > 0
    assert (median, news["anew"]) == (1.5, False)

    third = await _next(app_on_each_database)
    assert pulse.latest is third
    assert "journal" not in third.changes_since(2)["parts"]
    assert third.changes_since(2)["points"][0][1] == 0


class InTenMinutes(datetime):
    """A clock that is ahead."""

    @classmethod
    @override
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls.fromtimestamp(datetime.now(tz).timestamp() + 600, tz)


@shows("KEPT-10")
async def test_whoever_opens_the_page_later_is_told_ages_of_that_moment(
    app_on_each_database: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    await note(app_on_each_database, failed("before", ago=timedelta(minutes=5)))
    async with aclosing(stream_status(asked(app_on_each_database))) as heard:
        assert "5 min ago" in (await anext(heard))["parts"]["journal"]
    monkeypatch.setattr("frontdesk.interfaces.web.rendering.datetime", InTenMinutes)
    # Once from the same update, and once after an update without changes.
    for _ in range(2):
        async with aclosing(stream_status(asked(app_on_each_database))) as heard:
            told = (await anext(heard))["parts"]
        assert "15 min ago" in told["journal"]
        assert "5 min ago" not in told["failed"].replace("15 min ago", "")
        await _next(app_on_each_database)


async def _next(app: App) -> StatusUpdate:
    """The next update, as if its time had come."""
    pulse = status_feed_of(app)
    assert pulse.latest is not None
    pulse.latest = replace(pulse.latest, at=pulse.latest.at - RATE_STEP.total_seconds())
    return await pulse.next(asked(app))


def beat(number: int, ago: float, took_us: int = 1000, kind: EntryKind = EntryKind.CALL) -> EntryTiming:
    at = NOW - timedelta(seconds=ago) - timedelta(microseconds=took_us)
    return EntryTiming(number, at, kind, "mcp", Outcome.OK, took_us)


def test_the_pace_is_that_of_the_last_minute_and_of_calls_alone() -> None:
    beats = [
        *(beat(number, 10, number * 1000) for number in range(1, 31)),
        beat(40, 90),
        beat(41, 5, 9, EntryKind.TURN),
    ]
    found = recent_call_rate(beats, NOW, 100)
    assert (found.calls, found.median_us, found.slow_us) == (0.5, 16_000, 29_000)


def test_who_looks_at_the_pace_does_not_move_it() -> None:
    looks = [replace(beat(number, 1, 900_000), surface="web", outcome=Outcome.FAILED) for number in range(50, 60)]
    found = recent_call_rate([*looks, beat(1, 10), beat(2, 20), beat(3, 30)], NOW, 100)
    assert (found.calls, found.failed, found.slow_us) == (0.05, 0, 1000)


def test_of_more_calls_than_are_read_the_pace_is_that_of_the_time_they_cover() -> None:
    beats = [beat(number, number / 10) for number in range(1, 101)]
    assert recent_call_rate(beats, NOW, 100).calls == 10


def test_of_the_time_before_what_was_read_nothing_is_said() -> None:
    points = past_call_rates([beat(1, 3), beat(2, 9)], NOW, 2)
    assert len(points) == RATE_SPAN // RATE_STEP
    assert [point.pace.calls if point.pace else None for point in points[-6:]] == [None, None, 0, 0, 0.5, 0]


@pytest.mark.parametrize(("dead", "words"), [(1, "1 prompt could"), (2, "2 prompts could")])
async def test_what_was_given_up_is_one_or_many(app_on_each_database: App, dead: int, words: str) -> None:
    here = replace(await app_on_each_database.schedules.executor.state(OPERATOR), dead=dead, autostart=False)
    [told] = find_problems(InstallationStatus(NOW, "SQLite", HostStatus("Built in"), work=WorkStatus(here)))
    assert told.what.startswith(words)
    assert told.do == f"See why, then have {'it' if dead == 1 else 'them'} tried again."


def test_a_server_that_nobody_asked_for_long_is_stale() -> None:
    spec = ServerSpec("weather", url="http://127.0.0.1:9/mcp")
    forgotten = ServerState(spec, ServerStatus.OK, crawled_at=NOW - timedelta(hours=2), tools=3)
    fresh = replace(forgotten, crawled_at=NOW - timedelta(minutes=20))
    facts = InstallationStatus(
        NOW, "SQLite", HostStatus("Built in"), [forgotten], search_trouble="The embeddings API is away"
    )
    assert [trouble.what for trouble in find_problems(facts)] == [
        "1 tool server not refreshed for a long time: weather.",
        "Tool search is incomplete: The embeddings API is away",
    ]
    assert find_problems(replace(facts, servers=[fresh], search_trouble="")) == []


@pytest.mark.parametrize(
    ("owner", "name"),
    [(ELSEWHERE, "desk-7, process 4711"), ("desk-7/3f:12:token", "desk-7, process 12"), ("strange", "strange")],
)
def test_a_worker_is_named_by_machine_and_process(owner: str, name: str) -> None:
    assert worker_name(owner) == name


# Live updates: the number of listeners is limited, and clients that do not listen get nothing


SECONDS = 30
SCOPE: Scope = {
    "type": "http",
    "asgi": {"version": "3.0"},
    "http_version": "1.1",
    "method": "GET",
    "scheme": "http",
    "path": "/live/now",
    "raw_path": b"/live/now",
    "root_path": "",
    "query_string": b"",
    "headers": [(b"host", b"127.0.0.1:3020")],
    "server": ("127.0.0.1", 3020),
    "client": ("127.0.0.1", 1),
}


async def stays() -> Message:
    """A browser that continues to listen."""
    await anyio.sleep_forever()
    raise AssertionError


async def test_one_stream_too_many_is_refused_with_when_to_come_again(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "MOST_STREAMS", 3)
    asgi = build_application(app)
    begun: list[int] = []

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            begun.append(message["status"])

    async with browsing(asgi) as web, anyio.create_task_group() as tasks:

        async def listen() -> None:
            await asgi(dict(SCOPE), stays, send)

        for _ in range(3):
            tasks.start_soon(listen)
        await until(lambda: len(begun) == 3)
        answer = await web.client.get("/live/turns")
        assert begun == [200] * 3
        assert (answer.status_code, answer.headers["retry-after"]) == (503, str(RETRY_SECONDS))
        await web.get("/turns")
        tasks.cancel_scope.cancel()
    assert PageStream.open == 0


async def test_a_reader_that_takes_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "SEND_SECONDS", 0.05)
    ended = anyio.Event()

    async def told() -> AsyncGenerator[Mapping[str, Any]]:
        try:
            while True:
                yield {"number": 1}
        finally:
            ended.set()

    async def stalls(message: Message) -> None:
        if message["type"] == "http.response.body":
            await anyio.sleep_forever()

    with anyio.fail_after(SECONDS):
        await stream_events(told())(dict(SCOPE), stays, stalls)
        await ended.wait()
    assert PageStream.open == 0
