"""Tests the pages of turns, in process."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from frontdesk.agents.host import NewAgent, Prompt
from frontdesk.agents.turns.model import TurnQuery
from frontdesk.app import App, open_app
from frontdesk.identity.model import Caller
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.web.model import PageRequest
from frontdesk.interfaces.web.pages.turns import stream_list, stream_turn
from frontdesk.llm.events import Started
from frontdesk.schedules.requests import NewSchedule as Wish
from frontdesk.settings import Settings
from tests.hosts.lab import of_kind, script, take
from tests.requirements import shows
from tests.support.browsers import Browser, browsing, text_of
from tests.support.scheduling import OPERATOR

ANN = Caller("req-ann", user_id="ann")
ATTACK = "<script>window.pwned = 1</script><img src=x onerror=alert(1)>\u202etxt.exe"
NEVER = 600
SECONDS = 30


@pytest.fixture
async def opened(settings: Settings) -> AsyncGenerator[App]:
    """The services, on both databases."""
    async with open_app(settings) as app:
        yield app


@pytest.fixture
async def web(opened: App) -> AsyncGenerator[Browser]:
    async with browsing(build_application(opened)) as browser:
        yield browser


async def ada(app: App, name: str = "Ada") -> str:
    return (await app.host.create(NewAgent(name))).id


async def turn(app: App, agent: str, text: str, asks: frozenset[str] = frozenset()) -> str:
    """The id of a turn after its end."""
    return of_kind(await take(app.host, agent, text, caller=ANN, asks=asks), Started)[0].turn_id


def edit(text: str) -> dict[str, object]:
    return {"tool": "memory_rethink", "args": {"label": "human", "new_memory": text}}


async def waiting(app: App, agent: str) -> str:
    """The id of a turn in which the agent asks before it writes down what it learned."""
    asked = script(edit("Ann likes tea."), {"text": "Noted."})
    return await turn(app, agent, asked, asks=frozenset({"memory_rethink"}))


@shows("WEB-TURNS")
async def test_a_turn_is_told_in_order_with_its_tools_memory_and_plan(opened: App, web: Browser) -> None:
    agent = await ada(opened)
    plan = [{"text": "Greet her", "status": "completed"}, {"text": "Write it down", "status": "pending"}]
    steps = (
        {"reasoning": "She wants me to remember.", "tool": "update_plan", "args": {"steps": plan}},
        edit("Ann likes tea."),
        {"text": "I will remember that."},
    )
    told = text_of(await web.get(f"/turns/{await turn(opened, agent, 'Remember this. ' + script(*steps))}"))
    marks = (
        "Turn of Ada",
        "done",
        "ann said",
        "Remember this.",
        "Thought",
        "She wants me to remember.",
        "update_plan",
        "Greet her completed",
        "Write it down pending",
        "memory_rethink",
        "Memory “human” changed",
        "+ Ann likes tea.",
        "The agent said",
        "I will remember that.",
        "Raw JSON",
        '"event": "MemoryEdit"',
    )
    place = 0
    for mark in marks:
        assert mark in told[place:], mark
        place = told.index(mark, place)


@shows("WEB-TURNS")
async def test_turns_are_listed_the_newest_first_and_paged_by_key(opened: App, web: Browser) -> None:
    agent = await ada(opened)
    ids = [await turn(opened, agent, f"say {number}") for number in range(30)]

    def shown(html: str) -> list[str]:
        return [one for one in ids if f"/turns/{one}" in html]

    def order(html: str) -> list[str]:
        return sorted(shown(html), key=html.index)

    first = await web.get("/turns")
    assert order(first) == ids[:4:-1]
    assert "Older →" in first
    assert "← Newer" not in first
    second = await web.get("/turns", before=ids[5])
    assert order(second) == ids[4::-1]
    assert ("Older →" in second, "← Newer" in second) == (False, True)
    back = await web.get("/turns", after=ids[4])
    assert order(back) == ids[:4:-1]
    assert ("Older →" in back, "← Newer" in back) == (True, False)
    assert order(await web.get("/turns", before="turn-that-is-gone")) == ids[:4:-1]


@shows("WEB-TURNS")
async def test_the_list_is_narrowed_by_agent_and_by_how_turns_ended(opened: App, web: Browser) -> None:
    agent, other = await ada(opened), await ada(opened, "Bob")
    went_well = await turn(opened, agent, "hello")
    failed = await turn(opened, agent, script({"error": 500}))
    asked = await waiting(opened, other)
    narrowed: Sequence[tuple[dict[str, Any], set[str]]] = (
        ({"agent": agent}, {went_well, failed}),
        ({"outcome": "error"}, {failed}),
        ({"outcome": "end_turn", "agent": agent}, {went_well}),
        ({"outcome": "waiting"}, {asked}),
        ({"outcome": "running"}, set()),
    )
    for query, ids in narrowed:
        html = await web.get("/turns", **query)
        assert {one for one in (went_well, failed, asked) if f"/turns/{one}" in html} == ids, query
    assert "ann" in text_of(await web.get("/turns"))
    assert "No turn is like that" in text_of(await web.get("/turns", outcome="cancelled"))
    assert "is not an outcome of turns" in text_of(await web.get("/turns", 400, outcome="never"))


async def test_an_empty_list_says_what_to_do(web: Browser) -> None:
    html = await web.get("/turns")
    assert "No agent has taken a turn yet" in text_of(html)
    assert "frontdesk chat" in html


async def test_what_is_not_there_is_said_to_be_not_there(web: Browser) -> None:
    assert "There is no turn" in text_of(await web.get("/turns/turn-1", 404))
    await web.post("/turns/turn-1/cancel", None, 404)
    await web.post("/turns/turn-1/answer", None, 404)


@shows("WEB-TURNS")
@pytest.mark.parametrize("word", ["approve", "reject"])
async def test_a_word_on_a_call_that_waits_lets_the_agent_go_on(opened: App, web: Browser, word: str) -> None:
    agent = await ada(opened)
    asked = await waiting(opened, agent)
    page = await web.get(f"/turns/{asked}")
    assert "May it call memory_rethink ?" in text_of(page)
    call = (await opened.host.pending(agent, user_id=ANN.user_id))[0].call_id
    await web.post(f"/turns/{asked}/answer", {"call.0": call}, 400)
    form = {"call.0": call, "word.0": word, "reason.0": "not today"}
    await web.post(f"/turns/{asked}/answer", form)
    sequel = str(web.answer.url).rsplit("/", 1)[-1] if web.answer else ""
    assert sequel != asked
    await ended(opened, sequel)
    told = text_of(await web.get(f"/turns/{sequel}"))
    assert ("+ Ann likes tea." in told, "not today" in told) == (word == "approve", word == "reject")
    assert "It was called in a turn before this one" in told
    assert "Noted." in told
    before = text_of(await web.get(f"/turns/{asked}"))
    assert "The answer was given" in before
    assert "interrupted" not in before
    assert (await opened.turns.find(sequel)).user_id == "ann"
    await web.post(f"/turns/{asked}/answer", form, 409)
    await web.post(f"/turns/{asked}/cancel", None, 409)


@shows("WEB-TURNS")
async def test_of_several_calls_that_wait_each_needs_a_word(opened: App, web: Browser) -> None:
    agent = await ada(opened)
    calls = [{"name": "memory_rethink", "args": edit(text)["args"]} for text in ("one", "two")]
    asked = await turn(opened, agent, script({"tools": calls}, {"text": "Both."}), asks=frozenset({"memory_rethink"}))
    first, second = (one.call_id for one in await opened.host.pending(agent, user_id=ANN.user_id))
    await web.post(f"/turns/{asked}/answer", {"call.0": first, "word.0": "approve"}, 400)
    words = {"call.0": first, "word.0": "approve", "call.1": second, "word.1": "reject"}
    told = await web.post(f"/turns/{asked}/answer", words)
    assert "the agent continues here" in text_of(told)


@shows("WEB-TURNS")
async def test_a_turn_that_runs_is_told_so_far_and_can_be_cancelled(opened: App, web: Browser) -> None:
    agent = await ada(opened)
    async with underway(opened, agent, script(edit("so far"), {"delay": NEVER, "text": "never"})) as running:
        await told_of(opened, running, 3)
        page = text_of(await web.get(f"/turns/{running}"))
        assert "It runs" in page
        assert "+ so far" in page
        assert running in await web.get("/turns", outcome="running")
        await web.post(f"/turns/{running}/cancel")
        await ended(opened, running)
    page = text_of(await web.get(f"/turns/{running}"))
    assert "cancelled" in page
    assert "Cancel this turn" not in page
    await web.post(f"/turns/{running}/cancel", None, 409)


async def test_what_waits_can_be_given_up(opened: App, web: Browser) -> None:
    agent = await ada(opened)
    asked = await waiting(opened, agent)
    page = text_of(await web.post(f"/turns/{asked}/cancel"))
    assert "cancelled" in page
    assert "Waiting for your word" not in page
    assert not await opened.host.pending(agent, user_id=ANN.user_id)


@shows("WEB-TURNS")
async def test_the_list_is_told_of_new_turns_and_a_turn_of_its_steps(opened: App) -> None:
    agent = await ada(opened)
    asked = PageRequest(opened, Caller("req-live", local=True, any_agent=True), datetime.now(UTC))
    with anyio.fail_after(SECONDS):
        async with aclosing(stream_list(asked)) as told:
            first = await anext(told)
            one = await waiting(opened, agent)
            assert await anext(told) != first
            at_one = replace(asked, path_params={"turn_id": one})
            async with aclosing(stream_turn(at_one)) as heard:
                seen = await anext(heard)
                await opened.host.cancel(agent, user_id=ANN.user_id)
                assert await anext(heard) != seen


@shows("WEB-INERT")
async def test_what_agents_and_people_write_is_inert(opened: App, web: Browser) -> None:
    agent = await ada(opened, ATTACK)
    tool = {"tool": "memory_rethink", "args": {"label": "human", "new_memory": ATTACK}}
    one = await turn(opened, agent, ATTACK + script(tool, {"text": ATTACK, "reasoning": ATTACK}))
    call = await turn(opened, agent, script(tool), asks=frozenset({"memory_rethink"}))
    long = await turn(opened, await ada(opened), ATTACK + "A" * 1_000_000)
    for path in ("/turns", f"/turns/{one}", f"/turns/{call}", f"/turns/{long}"):
        html = await web.get(path)
        assert "<script>window" not in html
        assert "<img src=x" not in html
        assert len(html) < 400_000, path
    assert "Ada" in text_of(await web.get("/turns"))


@shows("WEB-TURNS")
async def test_a_turn_says_who_sent_it_and_leads_to_the_run_of_a_schedule(opened: App, web: Browser) -> None:
    agent = await ada(opened)
    wish = Wish("Count the cups", agent, when="every day at 9")
    schedule = (await opened.schedules.add(OPERATOR, wish)).schedule.id
    run = await opened.schedules.run_now(OPERATOR, schedule)
    await opened.schedules.executor.run_due(OPERATOR)
    [sent] = await opened.turns.list(TurnQuery(agent_id=agent))
    html = await web.get(f"/turns/{sent.id}")
    assert f"Schedule {schedule} said" in text_of(html)
    assert f'href="/schedule/{schedule}"' in html
    assert f'href="/schedule/runs/{run}"' in html
    assert f"Schedule {schedule} , now" in text_of(await web.get(f"/agents/{agent}/talk"))


async def test_whoever_names_a_turn_like_a_run_is_not_taken_for_the_schedule(opened: App, web: Browser) -> None:
    agent, other = await ada(opened), await ada(opened, "Bob")
    wish = Wish("Count the cups", other, when="every day at 9")
    schedule = (await opened.schedules.add(OPERATOR, wish)).schedule.id
    run = await opened.schedules.run_now(OPERATOR, schedule)
    for name in (run, "run-9-9"):
        prompt = Prompt(agent, Caller("req-nobody"), f"{name} it is", otid=name)
        begun = of_kind([event async for event in opened.host.send(prompt)], Started)[0].turn_id
        told = text_of(await web.get(f"/turns/{begun}"))
        assert "Somebody said" in told
        assert f"Sent as {name} the sender's own name for it" in told


async def ended(app: App, turn_id: str) -> None:
    async def is_over() -> bool:
        return not (await app.turns.find(turn_id)).running

    await until(is_over)


async def told_of(app: App, turn_id: str, count: int) -> None:
    """Wait until this many parts of a turn are stored."""

    async def is_told() -> bool:
        return len(await app.host.turn_history(await app.turns.find(turn_id))) >= count

    await until(is_told)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(SECONDS):
        while True:
            if await holds():
                return
            await anyio.sleep(0.02)


@asynccontextmanager
async def underway(app: App, agent: str, text: str) -> AsyncGenerator[str]:
    """A turn that runs within the block, and must be over at its end."""
    running = await app.turns.start_in_background(app.host.send(Prompt(agent, ANN, text)))
    assert running is not None
    yield running
    assert not (await app.turns.find(running)).running
