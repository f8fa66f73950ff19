"""Tests turns in the database: one at a time for a conversation, listed, cancelled, and resumed after a decision."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import anyio
import pytest
from sqlalchemy import insert, select, text, update
from structlog.testing import capture_logs

from frontdesk.agents.embedded.operation_tools import OperationTools
from frontdesk.agents.host import Approval, NewAgent, Prompt
from frontdesk.agents.turns import service
from frontdesk.agents.turns.model import LEASE, LeaseOwner, NewTurn, TurnQuery
from frontdesk.agents.turns.operations import answer_approvals, run_journaled_turn
from frontdesk.agents.turns.service import END_PAUSES
from frontdesk.agents.turns.store import TurnStore, clear_pending
from frontdesk.app import App, open_app
from frontdesk.db.engine import Database, Transaction
from frontdesk.db.schema import messages, turns
from frontdesk.errors import Busy, Unavailable
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.journal.model import EntryKind, Outcome
from frontdesk.journal.store import JournalQuery
from frontdesk.llm.events import (
    ApprovalRequest,
    Done,
    Event,
    Started,
    StopReason,
    TextChunk,
    ToolReturn,
    ToolStatus,
    TurnEnd,
    Usage,
)
from frontdesk.llm.tools import Tool, ToolOutcome
from frontdesk.operation_table import MEMORY_OPERATIONS
from frontdesk.settings import Settings
from tests.hosts.lab import CALLER, of_kind, said, script, take
from tests.support.waiting import age, set_clock_ahead, until

# Turns: one at a time in a conversation, recovered when their owner is gone, cancelled from another process


NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
ELSEWHERE = replace(LeaseOwner(), host="another-machine")
HERE = LeaseOwner()


async def nothing(_connection: Transaction) -> bool:
    return True


async def rows(database: Database) -> list[tuple[object, ...]]:
    async with database.read_transaction() as connection:
        found = await connection.execute(select(turns.c.id, turns.c.running, turns.c.stop).order_by(turns.c.id))
        return [tuple(row) for row in found.all()]


def turn(name: str, lane: str = "lane") -> NewTurn:
    return NewTurn(name, lane, "agent-1", "conv-1")


async def test_a_lock_takes_one_turn_at_a_time(database: Database) -> None:
    store = TurnStore(database)
    assert await store.claim(turn("one"), ELSEWHERE, nothing)
    assert await store.claim(turn("two"), HERE, nothing) is None
    assert await store.claim(turn("elsewhere", "another lane"), HERE, nothing)
    assert await store.end("one", ELSEWHERE, TurnEnd(StopReason.END_TURN, usage=Usage(3, 4, cost_usd=0.5)), NOW)
    assert await store.claim(turn("two"), HERE, nothing)


async def test_of_many_that_want_a_lock_at_once_one_gets_it(database: Database) -> None:
    store = TurnStore(database)
    got: list[bool] = []

    async def claim(number: int) -> None:
        owner = replace(ELSEWHERE, host=f"machine-{number}")
        got.append(await store.claim(turn(f"turn-{number}"), owner, nothing) is not None)

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(claim, number)
    assert sorted(got) == [False] * 7 + [True]


async def test_what_an_owner_elsewhere_left_is_taken_over_only_when_its_lease_is_over(database: Database) -> None:
    store, almost = TurnStore(database), LEASE - timedelta(seconds=10)
    assert await store.claim(turn("theirs"), ELSEWHERE, nothing)
    await age(database, turns.c.leased_until, almost)
    assert await store.claim(turn("ours"), HERE, nothing) is None
    assert await store.renew(ELSEWHERE, ["theirs"]) == ({"theirs"}, set())
    await age(database, turns.c.leased_until, almost)
    assert await store.claim(turn("ours"), HERE, nothing) is None
    await age(database, turns.c.leased_until, timedelta(seconds=11))
    assert await store.claim(turn("ours"), HERE, nothing)
    assert await store.renew(ELSEWHERE, ["theirs"]) == (set(), set())
    assert not await store.end("theirs", ELSEWHERE, TurnEnd(StopReason.END_TURN), NOW), "it is theirs no longer"


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_a_replica_whose_clock_is_ahead_takes_no_living_turn_over(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = TurnStore(database)
    assert await store.claim(turn("theirs"), ELSEWHERE, nothing)
    set_clock_ahead(monkeypatch)
    assert await store.claim(turn("ours"), HERE, nothing) is None
    assert await store.recover(HERE, "lane", ()) == 0
    assert await store.renew(ELSEWHERE, ["theirs"]) == ({"theirs"}, set())
    await age(database, turns.c.leased_until, LEASE + timedelta(seconds=1))
    assert await store.claim(turn("ours"), HERE, nothing), "what is renewed by a clock that is ahead lasts no longer"


@pytest.mark.parametrize("dead", [replace(HERE, pid=2**22 + 1), replace(HERE, token="an earlier start")])
async def test_what_a_dead_process_of_this_machine_left_is_marked_at_once(database: Database, dead: LeaseOwner) -> None:
    store = TurnStore(database)
    assert await store.claim(turn("left"), dead, nothing)
    assert await store.recover(HERE, "lane", ()) == 1
    assert await rows(database) == [("left", False, StopReason.INTERRUPTED)]


async def test_what_lives_is_left_alone(database: Database) -> None:
    store = TurnStore(database)
    alive = replace(HERE, pid=1, token="init")
    for lane, owner in (("ours", HERE), ("neighbour's", alive), ("elsewhere", ELSEWHERE)):
        assert await store.claim(turn(lane, lane), owner, nothing)
    for lane, underway in (("ours", ["ours"]), ("neighbour's", []), ("elsewhere", [])):
        assert await store.recover(HERE, lane, underway) == 0
    assert await store.recover(HERE, "ours", []) == 1, "what we no longer run is left behind"


async def test_what_cannot_begin_leaves_no_turn_behind(database: Database) -> None:
    store = TurnStore(database)

    async def refuse(_connection: Transaction) -> bool:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        await store.claim(turn("one"), HERE, refuse)
    assert await rows(database) == []


async def test_a_turn_is_cancelled_from_another_process(settings: Settings) -> None:
    async with open_app(settings) as app, open_app(settings) as other:
        agent = await app.host.create(NewAgent("Ada"))
        prompt = Prompt(agent.id, CALLER, script({"text": "word " * 2000, "chunk_delay": 0.01}))
        seen: list[object] = []
        with anyio.fail_after(60):
            async with aclosing(app.host.send(prompt)) as events:
                async for event in events:
                    seen.append(event)
                    if isinstance(event, TextChunk) and len(seen) == 5:
                        assert await other.host.cancel(agent.id)
        assert seen[-1] == Done(StopReason.CANCELLED)
        assert len(seen) < 1500


async def test_turns_of_two_processes_in_one_conversation_follow_each_other(settings: Settings) -> None:
    async with open_app(settings) as app, open_app(settings) as other:
        agent = await app.host.create(NewAgent("Ada"))

        async def talk(host_number: int) -> None:
            host = (app, other)[host_number].host
            for number in range(3):
                await take(host, agent.id, script({"text": f"{host_number} {number}", "chunk_delay": 0.005}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk, 0)
            tasks.start_soon(talk, 1)
        told = await app.host.history(agent.id)
        ids = [one.turn_id for one in told]
        assert len(set(ids)) == 6
        assert sum(one != two for one, two in pairwise(ids)) == 5, "no two are mixed"


class WaitingTool:
    """A tool that reports when it runs, and answers when it is released."""

    def __init__(self) -> None:
        self.runs = anyio.Event()
        self.opens = anyio.Event()

    def tool(self) -> Tool:
        async def run(_arguments: Mapping[str, Any]) -> ToolOutcome:
            self.runs.set()
            await self.opens.wait()
            return ToolOutcome("through")

        return Tool("gate", "Waits.", {"type": "object", "properties": {}}, run)


TWO_STEPS = script({"tool": "gate", "args": {}}, {"text": "after the gate"})


async def test_a_turn_that_was_taken_over_stores_nothing_more(settings: Settings) -> None:
    gate = WaitingTool()
    seen: list[list[Event]] = []
    async with open_app(settings) as app:
        agent = await app.host.create(NewAgent("Ada"))

        async def talk() -> None:
            seen.append(await take(app.host, agent.id, TWO_STEPS, tools=[gate.tool()]))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk)
            await gate.runs.wait()
            async with app.database.transaction() as connection:
                await connection.execute(
                    update(turns).values(owner="another:1:owner", running=False, stop="interrupted")
                )
            gate.opens.set()
        [events] = seen
        assert events[-1] == Done(StopReason.ERROR)
        assert "after the gate" not in said(events)
        told = [one.event for one in await app.host.history(agent.id)]
        assert [back.status for back in of_kind(told, ToolReturn)] == [ToolStatus.INTERRUPTED]
        assert told[-1] == Done(StopReason.INTERRUPTED)


async def test_deleting_an_agent_ends_its_turn_and_leaves_nothing(settings: Settings) -> None:
    gate = WaitingTool()
    async with open_app(settings) as app:
        agent = await app.host.create(NewAgent("Ada"))

        async def talk() -> None:
            await take(app.host, agent.id, TWO_STEPS, tools=[gate.tool()])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk)
            await gate.runs.wait()
            told = [one.event for one in await app.host.history(agent.id)]
            assert of_kind(told, ToolReturn) == [], "what runs is not told as interrupted"
            await app.host.delete(agent.id)
        async with app.database.read_transaction() as connection:
            assert (await connection.execute(select(messages.c.id))).all() == []
            assert (await connection.execute(select(turns.c.id))).all() == []


async def test_an_answer_whose_end_cannot_be_recorded_at_once_is_recorded_later(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failures = TurnStore.end, iter([Unavailable("away"), Unavailable("away")])

    async def end(self: TurnStore, *arguments: Any) -> bool:
        for failure in failures:
            raise failure
        return await real(self, *arguments)

    monkeypatch.setattr(TurnStore, "end", end)
    async with open_app(settings) as app:
        agent = await app.host.create(NewAgent("Ada"))
        assert (await take(app.host, agent.id, script({"text": "kept"})))[-1] == Done(StopReason.END_TURN)
        told = [one.event for one in await app.host.history(agent.id)]
        assert said(told) == "kept"
        assert told[-1] == Done(StopReason.END_TURN)


async def test_an_end_that_a_fault_keeps_from_being_recorded_is_tried_again_after_a_pause(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, faults, tried = TurnStore.end, iter([RuntimeError("a fault"), RuntimeError("a fault")]), list[float]()

    async def end(self: TurnStore, *arguments: Any) -> bool:
        tried.append(anyio.current_time())
        for fault in faults:
            raise fault
        return await real(self, *arguments)

    monkeypatch.setattr(TurnStore, "end", end)
    async with open_app(settings) as app:
        agent = await app.host.create(NewAgent("Ada"))
        assert (await take(app.host, agent.id, script({"text": "lost"})))[-1] == Done(StopReason.ERROR)
        waited = [later - earlier for earlier, later in pairwise(tried)]
        # A clock may show slightly less than the whole sleep, but never only half of it.
        assert [wait > pause / 2 for wait, pause in zip(waited, END_PAUSES, strict=False)] == [True, True]


async def test_a_lock_that_this_process_left_behind_is_free_at_once(settings: Settings) -> None:
    async with open_app(settings) as app:
        agent = await app.host.create(NewAgent("Ada"))
        await take(app.host, agent.id, script({"text": "one"}))
        async with app.database.transaction() as connection:
            later = datetime.now(UTC) + LEASE
            await connection.execute(
                update(turns).values(running=True, stop=None, owner=str(app.turns.owner), leased_until=later)
            )
        with anyio.fail_after(LEASE.total_seconds() / 2):
            assert said(await take(app.host, agent.id, script({"text": "two"}))) == "two"
        stops = [event.stop for event in of_kind([one.event for one in await app.host.history(agent.id)], Done)]
        assert stops == [StopReason.INTERRUPTED, StopReason.END_TURN]


def test_two_machines_do_not_take_each_other_for_dead() -> None:
    assert not ELSEWHERE.knows_ended(str(HERE))
    assert not HERE.knows_ended(str(replace(ELSEWHERE, pid=HERE.pid, token="x")))
    assert HERE.knows_ended(str(replace(HERE, token="an earlier process with our number")))
    assert len(str(HERE)) <= 200


# Turns are found by what they wait for, however many there were


WAITING = TurnEnd(StopReason.REQUIRES_APPROVAL, [ApprovalRequest("call-1", "buy", {})])
MANY = 20_000


async def taken(store: TurnStore, name: str, ending: TurnEnd, conversation: str = "conv-1") -> None:
    """A whole turn of Letta's: its message decides the approvals that waited before it."""
    new = NewTurn(name, "letta:agent-1", "agent-1", conversation)

    async def begin(connection: Transaction) -> bool:
        await clear_pending(connection, new.lane, new.conversation_id)
        return True

    assert await store.claim(new, HERE, begin)
    assert await store.end(name, HERE, ending, NOW)


async def waiting(store: TurnStore, agent_id: str | None = None) -> list[str]:
    found = await store.list(TurnQuery(agent_id=agent_id, waiting=True))
    assert all(turn.waits for turn in found)
    return [turn.id for turn in found]


async def test_what_waited_is_answered_once_the_conversation_goes_on(database: Database) -> None:
    store = TurnStore(database)
    await taken(store, "asked", WAITING)
    await taken(store, "elsewhere", WAITING, "conv-2")
    assert await waiting(store) == await waiting(store, "agent-1") == ["elsewhere", "asked"]
    assert await waiting(store, "agent-2") == []
    await taken(store, "went on", TurnEnd(StopReason.END_TURN))
    assert await waiting(store) == ["elsewhere"]
    asked = await store.find("asked")
    assert asked is not None
    assert (asked.waits, asked.pending, asked.stop) == (False, (), StopReason.REQUIRES_APPROVAL)
    await store.settle("letta:agent-1", "conv-2")
    assert await waiting(store) == []


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "query",
    [
        TurnQuery(waiting=True),
        TurnQuery(waiting=True, agent_id="busy"),
        TurnQuery(agent_id="busy", stop=StopReason.END_TURN),
        TurnQuery(agent_id="busy", running=True),
    ],
    ids=["waiting", "waiting of an agent", "outcome of an agent", "running of an agent"],
)
async def test_what_is_rare_is_found_without_going_through_all_the_rest(database: Database, query: TurnQuery) -> None:
    """SQLite counts the steps of a query: many more steps than rows would be a scan of the table."""
    common = {"lane": "lane", "conversation_id": "conv", "running": False, "owner": str(HERE), "cancel_asked": False}
    spent = {"input_tokens": 1, "output_tokens": 1, "leased_until": NOW}
    rows = [
        {
            **common,
            **spent,
            "id": f"turn-{number}",
            "agent_id": "busy" if number % 2 else "other",
            "stop": StopReason.REQUIRES_APPROVAL if number % 2 else StopReason.END_TURN,
            "started_at": NOW + timedelta(seconds=number),
        }
        for number in range(MANY)
    ]
    async with database.transaction() as connection:
        await connection.execute(insert(turns), rows)
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    async with database.read_transaction() as connection:
        driver: Any = (await connection.get_raw_connection()).driver_connection
        await driver.set_progress_handler(count, 100)
        await connection.execute(text("SELECT count(*) FROM turns WHERE owner = 'nobody'"))
    through_all, steps = steps, 0
    assert await TurnStore(database).list(query) == []
    assert steps < through_all / 50


# An agent continues after a person's decision with its earlier rights, and the outcome is known


AT_THIS_MACHINE = Caller("req-operator", local=True, any_agent=True)
WITH_A_KEY = Caller(
    "req-operator",
    user_id="boss",
    source=AgentIdSource.CREDENTIAL,
    verified=True,
    scopes=frozenset({"house:admin", "agents:chat"}),
    any_agent=True,
    credential_id="key:boss",
)
# A person who chats at this machine without a key.
VISITOR = Caller("req-visitor", user_id="local", credential_id="local")
ANN = Caller("req-ann", user_id="ann", verified=True, credential_id="key:ann")
SECONDS = 30


async def going_on(app: App, agent: str, asker: Caller, operator: Caller) -> Caller:
    """The caller for whom an agent continues to the end, when one asked and another approved."""
    seen: list[Prompt] = []
    over = anyio.Event()
    if asker is ANN:
        # The rights at the beginning of a turn must still hold when it continues.
        await app.keys.add(ApiKey("ann", b"", "ann's", None, "ann", None, datetime.now(UTC)))
    asks = script({"tool": "memory_rethink", "args": {"label": "human", "new_memory": "Likes tea"}}, {"text": "Noted"})
    events = await take(app.host, agent, asks, caller=asker, asks=frozenset({"memory_rethink"}))
    turn_id = of_kind(events, Started)[0].turn_id
    [request] = await app.host.pending(agent, user_id=asker.user_id)
    words = {request.call_id: Approval(request.call_id, approve=True)}
    real = app.host.send

    async def send(prompt: Prompt) -> AsyncGenerator[Event]:
        seen.append(prompt)
        async with aclosing(real(prompt)) as told:
            async for event in told:
                yield event
        over.set()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(app.host, "send", send)
        assert await answer_approvals(app.host, app.turns, app.journal, operator, turn_id, words)
        with anyio.fail_after(SECONDS):
            await over.wait()
    await anyio.wait_all_tasks_blocked()
    assert "Likes tea" in {block.value for block in await app.host.blocks(agent, asker.user_id)}
    return seen[0].agent_caller


@pytest.mark.parametrize("operator", [AT_THIS_MACHINE, WITH_A_KEY], ids=["local", "key"])
@pytest.mark.parametrize("asker", [VISITOR, ANN], ids=["visitor", "ann"])
async def test_an_agent_goes_on_with_no_more_rights_than_it_had(app: App, asker: Caller, operator: Caller) -> None:
    agent = (await app.host.create(NewAgent("Ada"))).id
    acting = await going_on(app, agent, asker, operator)
    assert (acting.user_id, acting.agent_id) == (asker.user_id, agent)
    assert (acting.local, acting.any_agent, acting.verified, acting.scopes) == (False, False, False, None)
    memory = OperationTools()
    memory.open(lambda: [app.bind(operation, app.memory) for operation in MEMORY_OPERATIONS])
    before = memory.for_caller(Prompt(agent, asker, "hello").agent_caller, None)
    assert len(memory.for_caller(acting, None)) == len(before)
    assert bool(before) == (asker is ANN), "all who chat without a key are one, who has no records"


async def test_a_turn_that_goes_on_is_in_the_journal(settings: Settings) -> None:
    async with open_app(settings) as app:
        agent = (await app.host.create(NewAgent("Ada"))).id
        await going_on(app, agent, ANN, AT_THIS_MACHINE)
        assert await turns_of(app, agent) == [("turn", Outcome.OK, None)]


async def test_what_is_refused_after_whoever_set_it_going_has_left_is_logged_and_in_the_journal(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "BEGIN_SECONDS", 0)
    left = anyio.Event()
    async with open_app(settings) as app:
        agent = (await app.host.create(NewAgent("Ada"))).id

        async def refused(_prompt: Prompt) -> AsyncGenerator[Event]:
            await left.wait()
            raise Busy("Another turn has been going on for 300 s; cancel it or try later")
            yield Started("", "")

        monkeypatch.setattr(app.host, "send", refused)
        prompt = Prompt(agent, ANN, "hello")
        with capture_logs() as logged:
            assert await app.turns.start_in_background(run_journaled_turn(app.host, app.journal, "web", prompt)) is None
            left.set()
            await until(lambda: bool(logged))
        assert [(one["event"], one["log_level"]) for one in logged] == [("turn_not_begun", "warning")]
        assert await turns_of(app, agent) == [("turn", Outcome.REFUSED, "Busy")]


async def turns_of(app: App, agent: str) -> list[tuple[str, Outcome, str | None]]:
    await app.journal.flush()
    rows = await app.journal.read(JournalQuery(agent_id=agent, limit=20))
    return [(row.action, row.outcome, row.reason) for _, row in rows if row.kind is EntryKind.TURN]
