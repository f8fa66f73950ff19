"""What the Letta host asks of its server for a turn, and on whose behalf."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from frontdesk.agents.host import AgentHost, Approval
from frontdesk.agents.letta import server
from frontdesk.agents.letta.handed_store import agent_lock
from frontdesk.agents.turns.model import NewTurn
from frontdesk.agents.turns.service import TurnWork
from frontdesk.app import App, open_app
from frontdesk.errors import Denied, NotFound
from frontdesk.identity.authority import Authority
from frontdesk.identity.model import KEY_CREDENTIAL_PREFIX, Caller
from frontdesk.llm.events import ApprovalRequest, StopReason, TurnEnd
from tests.conftest import settings_with
from tests.hosts.lab import said, take
from tests.requirements import shows
from tests.support.chat import key
from tests.support.moody_letta import AGENT, TALK, MoodyLetta, open_moody_letta

pytestmark = pytest.mark.anyio
OTHER = "agent-22222222-2222-4222-8222-222222222222"
PERSON = Caller("req-1", user_id="ann")


@pytest.fixture
def letta() -> Iterator[MoodyLetta]:
    with open_moody_letta() as server:
        yield server


@pytest.fixture
async def app(tmp_path: Path, letta: MoodyLetta) -> AsyncGenerator[App]:
    settings = settings_with(
        FRONTDESK_DATA=tmp_path / "data", LETTA_BASE_URL=letta.url, AGENT365_APPLICATION_NAME="the-desk"
    )
    async with open_app(settings) as opened:
        yield opened


@pytest.fixture
def host(app: App) -> AgentHost:
    return app.host


def asked(letta: MoodyLetta) -> list[str]:
    return [f"{request.method} {request.url.path.removeprefix('/v1/')}" for request in letta.requests]


@pytest.mark.parametrize("conversation", [None, TALK])
async def test_every_request_of_a_persons_turn_names_the_agent_and_the_request(
    host: AgentHost, letta: MoodyLetta, conversation: str | None
) -> None:
    events = await take(host, AGENT, "hello", caller=PERSON, conversation_id=conversation)
    assert said(events) == "All is well."
    assert "POST" in {request.method for request in letta.requests}
    named = ("x-agent-id", "x-request-id", "x-ms-agentid")
    told = {tuple(request.headers.get(name) for name in named) for request in letta.requests}
    # The last is for Agent 365's hosts.
    assert told == {(AGENT, "req-1", None)}


async def test_who_took_a_turn_is_not_said_with_what_comes_after(host: AgentHost, letta: MoodyLetta) -> None:
    await take(host, AGENT, "hello", caller=PERSON)
    letta.requests.clear()
    await host.find(AGENT)
    [request] = letta.requests
    assert not {"x-agent-id", "x-request-id", "x-ms-agentid"} & set(request.headers)


async def test_whose_a_conversation_is_is_asked_once_for_a_message(host: AgentHost, letta: MoodyLetta) -> None:
    await host.pending(AGENT, TALK)
    await take(host, AGENT, "hello", caller=PERSON, conversation_id=TALK)
    await host.history(AGENT, TALK)
    with pytest.raises(NotFound):
        await host.pending(OTHER, TALK)
    assert asked(letta) == [
        f"GET conversations/{TALK}",
        f"GET conversations/{TALK}/messages",
        f"GET conversations/{TALK}/messages",
        f"GET agents/{AGENT}",
        f"POST conversations/{TALK}/messages",
        f"GET conversations/{TALK}/messages",
    ]


async def test_a_message_in_a_chat_asks_for_what_waits_and_for_memory_and_no_more(app: App, letta: MoodyLetta) -> None:
    session = (await app.chat.open(PERSON, AGENT)).session
    letta.requests.clear()
    await app.chat.send_message(PERSON, session.id, "hello")
    async with aclosing(await app.chat.listen(PERSON, session.id, None)) as words:
        await anext(words)
    # What waits is looked at before the message is taken, and once more when its turn has come.
    assert asked(letta) == [
        f"GET conversations/{TALK}/messages",
        f"GET conversations/{TALK}/messages",
        f"GET agents/{AGENT}",
        f"POST conversations/{TALK}/messages",
    ]


async def test_a_conversation_that_may_be_gone_by_now_is_asked_for_again(
    host: AgentHost, letta: MoodyLetta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "OWNER_SECONDS", 0)
    await host.pending(AGENT, TALK)
    await host.pending(AGENT, TALK)
    assert asked(letta) == [f"GET conversations/{TALK}", f"GET conversations/{TALK}/messages"] * 2


async def test_so_many_conversations_are_known_and_no_more(
    host: AgentHost, letta: MoodyLetta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MAX_OWNERS", 2)
    for number in (1, 2, 3, 3, 1):
        await host.pending(AGENT, f"conv-{number}")
    looked_up = [one.rpartition("-")[2] for one in asked(letta) if not one.endswith("/messages")]
    assert looked_up == ["1", "2", "3", "1"]


@shows("KEPT-03")
async def test_what_waits_on_the_word_of_a_key_that_was_revoked_is_given_up(
    app: App, host: AgentHost, letta: MoodyLetta
) -> None:
    text = await key(app, "ann")
    credential = await app.identity.authenticate(text)
    request = ApprovalRequest("call-1", "send_mail", {})
    new = NewTurn("turn-1", agent_lock(AGENT), AGENT, TALK, "ann", None, Authority((credential.id,)))

    async def begin(_connection: object) -> None:
        return None

    async def run(_begun: None, _emit: object) -> TurnEnd:
        return TurnEnd(StopReason.REQUIRES_APPROVAL, (request,))

    async with aclosing(app.turns.take(new, TurnWork(begin, run))) as events:
        _ = [event async for event in events]
    assert (await app.turns.find("turn-1")).waits
    await app.identity.revoke_key(credential.id.removeprefix(KEY_CREDENTIAL_PREFIX))
    word = Approval(request.call_id, approve=True)
    with pytest.raises(Denied, match="was revoked"):
        await take(host, AGENT, approvals=[word], caller=PERSON, conversation_id=TALK)
    assert not (await app.turns.find("turn-1")).waits
    assert letta.asked == []
