"""An agent goes on after somebody's word with the rights it had before, and what comes of it is known."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime

import anyio
import pytest
from structlog.testing import capture_logs

from frontdesk.agents.host import Approval, NewAgent, Prompt
from frontdesk.agents.turns import service
from frontdesk.agents.turns.operations import answer_approvals, run_journaled_turn
from frontdesk.app import App, open_app
from frontdesk.errors import Busy
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.journal.model import EntryKind, Outcome
from frontdesk.journal.store import JournalQuery
from frontdesk.llm.events import Event, Started
from frontdesk.memory.operations.base import StatusSources
from frontdesk.memory.operations.builtin import BuiltinMemoryTools
from frontdesk.settings import Settings
from tests.hosts.lab import of_kind, script, take
from tests.support.waiting import until

pytestmark = pytest.mark.anyio
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
# Whoever chats at this machine without a key.
VISITOR = Caller("req-visitor", user_id="local", credential_id="local")
ANN = Caller("req-ann", user_id="ann", verified=True, credential_id="key:ann")
SECONDS = 30


async def going_on(app: App, agent: str, asker: Caller, operator: Caller) -> Caller:
    """As whom an agent goes on, to the end, with what it was asked by one and allowed by another."""
    seen: list[Prompt] = []
    over = anyio.Event()
    if asker is ANN:
        # What a turn was begun with must still hold when it goes on.
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
    memory = BuiltinMemoryTools()
    memory.open(app.memory, StatusSources(app.check_parts, app.journal))
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
