"""Tests the pages below /schedule: their contents, their actions, and their refusals."""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qsl

import anyio
import pytest

from frontdesk.agents.host import NewAgent
from frontdesk.agents.turns.model import TurnQuery
from frontdesk.app import App, open_app
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.web.model import PageRequest as Request
from frontdesk.interfaces.web.pages.schedule import ROWS_PER_PAGE, stream_list, stream_schedule
from frontdesk.interfaces.web.pages.schedule_view import webhook_host
from frontdesk.schedules.descriptions import describe_rule
from frontdesk.schedules.model import SECOND, RunStatus, ScheduleDefinition, ScheduleState, Trigger, TriggerKind, now_us
from frontdesk.schedules.requests import ListRuns, NewSchedule, ScheduleChange
from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.browsers import Browser, browsing, text_of
from tests.support.scheduling import OPERATOR

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202egnp.exe\u202c"
WORDS = "every weekday at 9 Berlin time"
SECONDS = 30
ROWS = re.compile(r'<th scope="row"><a href="/schedule/(\d+)">')


@pytest.fixture
async def installation(settings: Settings) -> AsyncGenerator[App]:
    async with open_app(settings) as app:
        yield app


@pytest.fixture
async def web(installation: App) -> AsyncGenerator[Browser]:
    async with browsing(build_application(installation)) as browser:
        yield browser


@pytest.fixture
async def ada(installation: App) -> str:
    return (await installation.host.create(NewAgent("Ada"))).id


async def made(installation: App, agent: str, prompt: str = "Daily report", **asked: Any) -> int:
    """A schedule of an agent, which the host need not know."""
    wish = NewSchedule(prompt, agent, skip_validation=True, **(asked or {"when": WORDS}))
    return (await installation.schedules.add(OPERATOR, wish)).schedule.id


async def ran(installation: App, number: int) -> str:
    """A finished run of it."""
    run = await installation.schedules.run_now(OPERATOR, number)
    await installation.schedules.executor.run_due(OPERATOR)
    return run


async def go(web: Browser, address: str) -> str:
    """The value as a link encodes it."""
    path, _, query = unescape(address).partition("?")
    said: dict[str, Any] = dict(parse_qsl(query))
    return await web.get(path, **said)


async def state_of(installation: App, number: int) -> ScheduleState:
    return (await installation.schedules.queries.get(OPERATOR, number)).state


async def test_an_empty_schedule_says_how_to_make_one(web: Browser) -> None:
    read = text_of(await web.get("/schedule"))
    assert "Nothing is scheduled" in read
    assert "frontdesk schedule add AGENT" in read
    assert "Nothing has run yet" in text_of(await web.get("/schedule", show="runs"))
    assert "There is no agent yet" in text_of(await web.get("/schedule/new"))


@shows("WEB-SCHEDULE")
async def test_what_comes_is_listed_by_time_with_the_clock_there_and_in_utc(
    installation: App, web: Browser, ada: str
) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    late = await made(installation, ada, time=(tomorrow + timedelta(hours=1)).isoformat())
    soon = await made(installation, ada, time=tomorrow.replace(microsecond=0).isoformat(), zone="Europe/Berlin")
    html = await web.get("/schedule")
    assert ROWS.findall(html) == [str(soon), str(late)]
    read = text_of(html)
    assert f"{tomorrow:%a %d %b %Y %H:%M:%S UTC}" in read or f"{tomorrow:%a %d %b %Y %H:%M UTC}" in read
    assert re.search(r"\d\d:\d\d(:\d\d)? Europe/Berlin", read)
    assert "Ada" in read


async def test_schedules_are_filtered_by_agent_and_state_in_the_address(
    installation: App, web: Browser, ada: str
) -> None:
    hers, other = await made(installation, ada), await made(installation, "agent-ben")
    paused, gone = await made(installation, ada), await made(installation, ada)
    await installation.schedules.pause(OPERATOR, paused)
    await installation.schedules.cancel(OPERATOR, gone)
    assert ROWS.findall(await web.get("/schedule", agent=ada)) == [str(hers)]
    assert ROWS.findall(await web.get("/schedule", agent="agent-ben")) == [str(other)]
    assert ROWS.findall(await web.get("/schedule", state="paused")) == [str(paused)]
    assert ROWS.findall(await web.get("/schedule", state="cancelled", agent=ada)) == [str(gone)]
    assert ROWS.findall(await web.get("/schedule", state="any")) == [str(one) for one in (gone, paused, other, hers)]
    assert "No schedule is like this" in text_of(await web.get("/schedule", state="ended"))
    assert "state is active, paused, cancelled or ended" in text_of(await web.get("/schedule", 400, state="odd"))
    assert "begin the list anew" in text_of(await web.get("/schedule", 400, after="odd"))


@pytest.mark.parametrize("state", ["", "any", "paused"])
async def test_long_lists_go_on_where_the_page_before_ended(
    installation: App, web: Browser, ada: str, state: str
) -> None:
    numbers = [await made(installation, ada, every="1h") for _ in range(ROWS_PER_PAGE + 2)]
    if state == "paused":
        for number in numbers:
            await installation.schedules.pause(OPERATOR, number)
    first = await web.get("/schedule", state=state)
    following = re.search(r'rel="next" href="([^"]+)"', first)
    assert following is not None
    second = await go(web, following[1])
    assert sorted(int(one) for one in ROWS.findall(first) + ROWS.findall(second)) == numbers
    assert 'rel="next"' not in second


@shows("WEB-SCHEDULE")
async def test_plain_words_are_previewed_as_one_types(web: Browser) -> None:
    part = await web.get("/schedule/new", part=True, when=WORDS)
    assert "<html" not in part
    read = text_of(part)
    assert "Understood as every weekday at 09:00 Time zone: Europe/Berlin" in read
    assert "The rule that is kept: cron 0 9 * * MON-FRI , Europe/Berlin" in read
    assert len(re.findall(r"09:00 Europe/Berlin", read)) == 5
    assert "Time zone: Europe/Berlin" in read
    assert "is no rule that can be read" in text_of(await web.get("/schedule/new", part=True, when="whenever"))
    assert "Unknown time zone: Nowhere" in text_of(
        await web.get("/schedule/new", part=True, when="every day at 9", zone="Nowhere")
    )
    assert "Say when" in text_of(await web.get("/schedule/new", part=True, when=" "))


async def test_the_preview_button_shows_the_same_and_keeps_what_was_typed(
    web: Browser, installation: App, ada: str
) -> None:
    typed = {"when": "every day at 7", "zone": "Asia/Tokyo", "agent": ada, "prompt": "Count\r\nthe <sheep>"}
    html = await web.post("/schedule/new/preview", typed)
    assert len(re.findall(r"07:00 Asia/Tokyo", text_of(html))) == 5
    assert "Count\nthe &lt;sheep&gt;</textarea>" in html
    assert f'<option value="{ada}" selected>' in html
    assert (await installation.schedules.queries.list(OPERATOR)).schedules == []


@shows("WEB-SCHEDULE")
async def test_a_schedule_is_made_in_plain_words(web: Browser, installation: App, ada: str) -> None:
    html = await web.post("/schedule/new", {"when": WORDS, "agent": ada, "prompt": "Write\r\nthe report"})
    [one] = (await installation.schedules.queries.list(OPERATOR)).schedules
    assert (one.what.words, one.what.trigger.zone, one.what.prompt) == (WORDS, "Europe/Berlin", "Write\nthe report")
    read = text_of(html)
    assert re.search(rf"Created schedule {one.id}: every weekday at 09:00, next \w+ .* 09:00 Europe/Berlin", read)
    assert read.count("09:00 Europe/Berlin") >= 5


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({"when": ""}, "Must specify when, such as"),
        ({"when": "whenever"}, "is no rule that can be read"),
        ({"prompt": ""}, "prompt"),
        ({"agent": "agent-nobody"}, "not known to the agent host"),
    ],
)
async def test_what_cannot_be_made_is_said_beside_what_was_typed(
    web: Browser, installation: App, ada: str, typed: dict[str, str], told: str
) -> None:
    given = {"when": WORDS, "agent": ada, "prompt": "Write the report", **typed}
    html = await web.post("/schedule/new", given, 400)
    assert told in text_of(html)
    assert f'value="{given["when"]}"' in html
    assert (await installation.schedules.queries.list(OPERATOR)).schedules == []


@shows("WEB-SCHEDULE")
async def test_a_schedule_is_paused_resumed_run_and_cancelled(web: Browser, installation: App, ada: str) -> None:
    number = await made(installation, ada)
    html = await web.post(f"/schedule/{number}/pause")
    assert await state_of(installation, number) is ScheduleState.PAUSED
    assert "It is paused: none of these fires" in text_of(html)
    html = await web.post(f"/schedule/{number}/resume")
    assert await state_of(installation, number) is ScheduleState.ACTIVE
    assert "continues: every weekday at 09:00, next" in text_of(html)
    html = await web.post(f"/schedule/{number}/run")
    [run] = (await installation.schedules.queries.history(OPERATOR)).runs
    assert (run.schedule_id, run.manual, run.standing) == (number, True, RunStatus.WAITING)
    assert f"The next free worker runs it: {run.id}" in text_of(html)
    assert "Under way" in text_of(await web.get("/schedule", show="runs"))
    html = await web.post(f"/schedule/{number}/cancel")
    assert await state_of(installation, number) is ScheduleState.CANCELLED
    assert "/pause" not in html
    assert "It does not fire again by its rule" in text_of(html)
    assert "only an active one can be paused" in text_of(await web.post(f"/schedule/{number}/pause", None, 409))


async def test_cancelling_asks_once_more_and_nothing_else_does(web: Browser, installation: App, ada: str) -> None:
    html = await web.get(f"/schedule/{await made(installation, ada)}")
    assert "It ends for good" in text_of(html)
    assert html.count('class="sure"') == 1


async def test_a_run_shows_its_answer_and_where_it_is_listed(web: Browser, installation: App, ada: str) -> None:
    number = await made(installation, ada, "Say hello")
    run = await ran(installation, number)
    [past] = (await installation.schedules.queries.history(OPERATOR)).runs
    assert past.answer is not None
    for address in (f"/schedule/{number}", f"/schedule/runs/{run}", "/schedule?show=runs"):
        read = text_of(await go(web, address))
        assert run in read
        assert "delivered" in read
        assert " ".join(past.answer.split())[:100] in read
    assert "1 delivered, 0 given up" in text_of(await web.get("/schedule"))
    assert run in await web.get("/schedule", show="runs", agent=ada, state="delivered")
    assert run not in await web.get("/schedule", show="runs", state="dead")


@shows("WEB-SCHEDULE")
async def test_a_dead_delivery_is_found_and_redriven(web: Browser, installation: App) -> None:
    number = await made(installation, "agent-gone", attempts=1, when=WORDS)
    run = await ran(installation, number)
    html = await web.get("/schedule")
    assert "1 run is dead: it was given up" in text_of(html)
    assert 'class="bar dead"' in html
    for agent in ("", "agent-gone"):
        html = await web.get("/schedule", show="runs", state="dead", agent=agent)
        assert f"/schedule/runs/{run}/redrive" in html
    html = await web.post(f"/schedule/runs/{run}/redrive")
    assert f"{run} is retried, from its first attempt" in text_of(html)
    assert "1 earlier attempt" in text_of(html)
    [past] = (await installation.schedules.queries.history(OPERATOR, ListRuns(number))).runs
    assert (past.standing, past.attempt) == (RunStatus.WAITING, 0)
    assert "only a dead one can be tried again" in text_of(await web.post(f"/schedule/runs/{run}/redrive", None, 409))


async def test_a_rule_in_a_zone_that_is_not_known_here_is_shown_all_the_same(web: Browser, installation: App) -> None:
    trigger = Trigger(TriggerKind.CRON, "0 9 * * *", "Mars/Olympus")
    soon = now_us() + 60 * SECOND
    number = (
        await installation.schedules.store.add(ScheduleDefinition("agent-ada", "Hello", trigger), soon, now_us())
    ).id
    assert ROWS.findall(await web.get("/schedule")) == [str(number)]
    assert "Unknown time zone: Mars/Olympus" in text_of(await web.get(f"/schedule/{number}"))


async def test_what_is_not_there_is_not_found(web: Browser) -> None:
    assert "Schedule 77 not found" in text_of(await web.get("/schedule/77", 404))
    assert "Schedule ID must be a number" in text_of(await web.get("/schedule/odd", 400))
    assert "There is no run 'run-1-1'" in text_of(await web.get("/schedule/runs/run-1-1", 404))
    await web.post("/schedule/77/run", None, 404)


async def test_hostile_words_are_shown_inert(web: Browser, installation: App) -> None:
    agent = (await installation.host.create(NewAgent("<b>Eve</b>\u202e"))).id
    number = await made(installation, agent, HOSTILE * 200)
    run = await ran(installation, number)
    addresses = ("/schedule", "/schedule?show=runs", f"/schedule/{number}", f"/schedule/runs/{run}", "/schedule/new")
    for address in addresses:
        html = await go(web, address)
        assert "<script>alert" not in html
        assert "<img src=x" not in html
        assert "<b>Eve" not in html
    typed = {"when": f'"><script>alert(1)</script> {HOSTILE}', "prompt": f"</textarea>{HOSTILE}", "zone": HOSTILE}
    for html in (await web.post("/schedule/new/preview", typed), await web.post("/schedule/new", typed, 400)):
        assert "<script>alert" not in html
        assert "</textarea>&lt;" not in html.replace("</textarea>\n", "")


def test_a_webhook_is_named_by_its_host_alone() -> None:
    assert webhook_host("https://ann:secret@hooks.example:8443/in?token=secret") == "hooks.example"
    assert webhook_host(None) == ""


async def test_an_open_schedule_is_told_of_every_change(installation: App, ada: str) -> None:
    number = await made(installation, ada)
    asked = Request(installation, OPERATOR, datetime.now(UTC), path_params={"id": str(number)})
    with anyio.fail_after(SECONDS):
        async with aclosing(stream_schedule(asked)) as told:
            marks = [await anext(told)]
            await installation.schedules.pause(OPERATOR, number)
            marks.append(await anext(told))
            await installation.schedules.run_now(OPERATOR, number)
            marks.append(await anext(told))
            await installation.schedules.executor.run_due(OPERATOR)
            marks.append(await anext(told))
    assert len({one["mark"] for one in marks}) == 4


@shows("WEB-SCHEDULE")
@pytest.mark.parametrize("narrowed", [False, True])
async def test_an_open_list_is_told_of_whatever_changes_on_it(installation: App, ada: str, narrowed: bool) -> None:
    number = await made(installation, ada)
    asked = Request(installation, OPERATOR, datetime.now(UTC), query={"agent": ada} if narrowed else {})
    schedules = installation.schedules
    with anyio.fail_after(SECONDS):
        async with aclosing(stream_list(asked)) as told:
            marks = [await anext(told)]
            await schedules.pause(OPERATOR, number)
            marks.append(await anext(told))
            await schedules.resume(OPERATOR, number)
            marks.append(await anext(told))
            await schedules.update(OPERATOR, number, ScheduleChange(prompt="Another report"))
            marks.append(await anext(told))
            await made(installation, ada)
            marks.append(await anext(told))
    assert len({one["mark"] for one in marks}) == 5


async def test_an_open_list_of_runs_is_told_of_their_beginning_and_their_end(installation: App, ada: str) -> None:
    number = await made(installation, ada)
    asked = Request(installation, OPERATOR, datetime.now(UTC), query={"show": "runs"})
    with anyio.fail_after(SECONDS):
        async with aclosing(stream_list(asked)) as told:
            marks = [await anext(told)]
            await installation.schedules.run_now(OPERATOR, number)
            marks.append(await anext(told))
            await installation.schedules.executor.run_due(OPERATOR)
            marks.append(await anext(told))
    assert len({one["mark"] for one in marks}) == 3


async def test_a_page_names_to_its_live_part_what_it_shows(installation: App, web: Browser, ada: str) -> None:
    paused = await made(installation, ada)
    await installation.schedules.pause(OPERATOR, paused)
    html = await web.get("/schedule", state="paused", agent=ada)
    [address] = re.findall(r'data-live="/live/schedule\?([^"]+)"', html)
    asked = Request(installation, OPERATOR, datetime.now(UTC), query=dict(parse_qsl(unescape(address))))
    assert (asked.query["state"], asked.query["agent"]) == ("paused", ada)
    async with aclosing(stream_list(asked)) as told:
        with anyio.move_on_after(0.3) as waited:
            await anext(told)
        assert waited.cancelled_caught


@shows("WEB-SCHEDULE")
async def test_a_run_shows_the_clock_of_its_schedule_and_leads_to_its_turn(
    installation: App, web: Browser, ada: str
) -> None:
    run = await ran(installation, await made(installation, ada))
    [turn] = await installation.turns.list(TurnQuery(agent_id=ada))
    for address in (f"/schedule/runs/{run}", "/schedule?show=runs"):
        read = text_of(await go(web, address))
        assert re.search(r"\d\d:\d\d(:\d\d)? Europe/Berlin", read)
        assert re.search(r"\d\d:\d\d(:\d\d)? UTC", read)
    assert f'href="/turns/{turn.id}"' in await web.get(f"/schedule/runs/{run}")
    back = await web.get(f"/turns/{turn.id}")
    assert f'href="/schedule/runs/{run}"' in back


async def test_runs_by_hand_are_not_counted_as_fires_of_the_rule(installation: App, web: Browser, ada: str) -> None:
    number = await made(installation, ada)
    await ran(installation, number)
    assert "Fired by its rule 0 times runs by hand do not count" in text_of(await web.get(f"/schedule/{number}"))


async def test_what_is_live_is_paused_in_other_words_than_a_schedule(installation: App, web: Browser, ada: str) -> None:
    for html in (await web.get("/schedule"), await web.get(f"/schedule/{await made(installation, ada)}")):
        assert re.findall(r"data-pause[^>]*>([^<]+)</button>", html) == ["Pause live"]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("cron 0 9 * * MON-FRI", "every weekday at 09:00"),
        ("cron 0 9,17 * * *", "every day at 09:00 and 17:00"),
        ("cron 30 7 * * 1-5", "every weekday at 07:30"),
        ("cron 0 9 * * SAT,SUN", "every Saturday and Sunday at 09:00"),
        ("cron 0 9 * * MON-SUN", "every day at 09:00"),
        ("cron 0 9 * * 7", "every Sunday at 09:00"),
        ("cron 0 9 * * MON#1", "on the first Monday of every month at 09:00"),
        ("cron 0 9 * * 5L", "on the last Friday of every month at 09:00"),
        ("cron 0 9 1,15 * *", "every month on the 1st and 15th at 09:00"),
        ("cron 0 9 L * *", "on the last day of every month at 09:00"),
        ("cron 0 9 25 12 *", "every year on 25 December at 09:00"),
        ("cron */5 * * * *", "every 5 minutes"),
        ("cron 5 * * * *", "every hour at :05"),
        ("cron 0 */2 * * MON-FRI", "every weekday, every 2 hours on the hour"),
        ("every 30m", "every 30 minutes"),
        ("every 1d", "every day"),
        ("once 2031-03-01T00:00:00+00:00", "once"),
        # Rules without plain words, or that need too many.
        ("cron */7 * * * *", "by a cron rule"),
        ("cron 0 9 1 * MON", "by a cron rule"),
        ("cron 0 9 * * FRI-MON", "by a cron rule"),
        ("cron 0 9 * * XL", "by a cron rule"),
        ("cron 0 9 * * MON#9", "by a cron rule"),
        ("cron 0 9 1 13 *", "by a cron rule"),
        ("cron */0 * * * *", "by a cron rule"),
        ("cron @reboot", "by a cron rule"),
    ],
)
def test_rules_are_told_in_plain_words_where_there_are_any(rule: str, words: str) -> None:
    assert describe_rule(rule) == words
