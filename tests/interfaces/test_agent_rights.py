"""Tests an agent's rights in a turn, by the credential of the request, and that a deleted agent keeps none."""

from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest

from frontdesk.agents.embedded.store import first_conversation_id
from frontdesk.agents.host import Approval, HeldTool, NewAgent, Prompt
from frontdesk.agents.letta.handed_store import agent_lock
from frontdesk.agents.turns import model as retelling
from frontdesk.agents.turns.model import NewTurn
from frontdesk.agents.turns.operations import answer_approvals
from frontdesk.agents.turns.service import TurnWork
from frontdesk.app import App, open_app
from frontdesk.errors import Denied, MissingScope, NotFound, Unauthenticated, Unavailable
from frontdesk.identity import rights
from frontdesk.identity.authority import Authority
from frontdesk.identity.keys import ApiKey, parse_key
from frontdesk.identity.model import AgentIdSource, Caller, Signals
from frontdesk.identity.store import KeyStore
from frontdesk.interfaces.app_runner import local_caller
from frontdesk.interfaces.http.application import build_application
from frontdesk.llm.events import Event, Started, StopReason, ToolReturn, TurnEnd
from frontdesk.memory.model import PersonScope
from frontdesk.schedules.model import RunRecord, RunStatus, ScheduleState
from frontdesk.schedules.requests import ListRuns, ListSchedules, NewSchedule, ScheduleChange
from frontdesk.settings import OAuthClient, Settings
from frontdesk.tools.servers import ServerSpec
from tests.hosts.lab import of_kind, said, script, take
from tests.requirements import shows
from tests.support.browsers import browsing, text_of
from tests.support.chat import all_made, key, somebody
from tests.support.memory import speaking
from tests.support.tool_servers import ToolServer, open_tool_server, tool
from tests.support.wire import MODERN, call, send

# An agent's rights in a turn are those of the credential that requested the turn


SECRET = "the-colour-of-the-door-is-vermilion"
CHAT = ("agents:chat", "agents:read")
EVERY = frozenset(rights.SCOPES)
LATER = "every day at 9"
# Actions on the agent itself and its own memory only, for any person.
ITS_OWN = {
    *("memory_insert", "memory_replace", "memory_rethink", "memory"),
    *("core_memory_append", "core_memory_replace", "update_plan", "get_system_status"),
}
# Everything that an agent could want and that a key for chatting alone must not allow.
WISHES: list[tuple[str, dict[str, Any]]] = [
    ("search_memories", {"search": "door"}),
    ("add_memory", {"note": "planted"}),
    ("search_across_timeline", {"query": "door"}),
    ("search_tasks", {}),
    ("create_task", {"title": "planted"}),
    ("schedule_prompt", {"prompt": "planted", "when": LATER}),
    ("list_schedules", {}),
    ("cancel_schedule", {"schedule_id": 1}),
    ("find_tools", {"query": "send mail"}),
    ("call_tool", {"name": "shop::send_mail", "arguments": {"text": "x"}}),
    ("shop__send_mail", {"text": "x"}),
]
WISHED = script({"tools": [{"name": name, "args": given} for name, given in WISHES[:-1]]}, {"text": "."})


@pytest.fixture(scope="module")
def shop() -> Any:
    with open_tool_server("shop", [tool("send_mail", "Sends a mail.")]) as server:
        yield server


@pytest.fixture
async def installation(settings: Settings, shop: ToolServer) -> AsyncGenerator[App]:
    async with open_app(settings.with_values(embeddings="off")) as app:
        yield app


@pytest.fixture
async def agent(installation: App, shop: ToolServer) -> str:
    return await ready(installation, shop)


async def ready(app: App, shop: ToolServer) -> str:
    """An agent that holds the only tool of the catalogue."""
    await app.tools.catalogue.add(ServerSpec("shop", url=shop.url))
    shop.called.clear()
    made = (await app.host.create(NewAgent("Ada"))).id
    await app.host.attach(made, HeldTool("", "", server="shop", remote_name="send_mail"))
    return made


async def caller(app: App, text: str) -> Caller:
    """The caller with a key, as identity represents it."""
    return await app.identity.identify(Signals("test", credential=await app.identity.authenticate(text)))


async def offered(app: App, agent: str, who: Caller) -> set[str]:
    """The tools that the model learns of when it calls one that does not exist."""
    [answer] = of_kind(await take(app.host, agent, script({"tool": "nosuch"}, {"text": "."}), caller=who), ToolReturn)
    return set(answer.text.partition("there are: ")[2].split(", "))


@shows("KEPT-03")
async def test_every_tool_is_withheld_from_a_key_without_its_scope_and_refused_when_called(
    app: App, shop: ToolServer
) -> None:
    """Read from the product: the tools with all scopes, against those of a key with each scope left out."""
    installation, agent = app, await ready(app, shop)
    everything = await offered(installation, agent, await caller(installation, await key(installation, "ann", *EVERY)))
    assert everything == await offered(installation, agent, Caller("cli", user_id="ann")), "at this machine all stay"
    withheld: dict[str, set[str]] = {}
    for scope in sorted(EVERY - {rights.MEMORY_ADMIN}):
        limited = EVERY - {scope, rights.MEMORY_ADMIN}
        who = await caller(installation, await key(installation, "ann", *limited))
        withheld[scope] = gone = everything - await offered(installation, agent, who)
        if gone:
            steps = [{"name": name, "args": dict(WISHES).get(name, {})} for name in sorted(gone)]
            answers = of_kind(
                await take(installation.host, agent, script({"tools": steps}, {"text": "."}), caller=who), ToolReturn
            )
            assert {one.name for one in answers if one.text.startswith(f"Tool '{one.name}' not found")} == gone
    bound = set[str]().union(*withheld.values())
    assert everything - bound <= ITS_OWN
    assert {name for name, _ in WISHES} <= bound
    assert shop.called == []
    nothing = await caller(installation, await key(installation, "ann", "agents:chat"))
    assert await offered(installation, agent, nothing) == everything - bound


@shows("KEPT-03")
async def test_a_key_for_chatting_gets_nothing_through_the_agent_that_it_does_not_get_itself(
    installation: App, agent: str, shop: ToolServer
) -> None:
    asgi = build_application(installation)
    narrow, full = await key(installation, "ann", *CHAT), await key(installation, "ann")
    async with speaking(asgi, full) as owner, speaking(asgi, narrow) as thief, somebody(asgi, narrow) as talker:
        kept = await remembered(installation)
        assert SECRET in str(await owner.get("/memories"))
        await thief.get("/memories", 403)
        session = await talker.open(agent)
        wishes = [*WISHES, ("delete_memory", {"id": kept}), ("get_memory", {"id": kept})]
        steps = [{"name": name, "args": given} for name, given in wishes]
        await talker.say(session, script({"tools": steps}, {"text": "."}))
        await all_made(installation)
        heard = str((await talker.get("/sessions", sessionId=session)).json()["messages"])
    assert SECRET not in heard
    assert "planted" not in await everything_of(installation)
    assert SECRET in await everything_of(installation)
    assert (shop.called, await schedules_of(installation)) == ([], [])
    await take(installation.host, agent, WISHED, caller=in_agent(agent, await caller(installation, full)))
    assert "planted" in await everything_of(installation), "the same wishes come true for a key that may do all this"
    assert (set(shop.called), await schedules_of(installation)) == ({"send_mail"}, [ScheduleState.CANCELLED])


async def schedules_of(app: App) -> list[ScheduleState]:
    listed = await app.schedules.queries.list(local_caller(), ListSchedules(include_cancelled=True))
    return [one.state for one in listed.schedules]


async def remembered(app: App) -> str:
    """The id of one of Ann's memories."""
    return (await app.memory.memories.create(PersonScope("ann"), {"note": SECRET})).id


async def everything_of(app: App) -> str:
    """All of Ann's records, without the messages to her agent, which contain each wish."""
    return str((await app.memory.people.export(PersonScope("ann")))["records"])


LOOK = script({"tool": "search_memories", "args": {"search": "door"}}, {"text": "."})
TRICK = f"Do this: {LOOK}"


async def ran(app: App, schedule_id: int) -> tuple[RunRecord, str]:
    """A run of a schedule, and everything that its agent received in it."""
    delivery = await app.schedules.run_now(local_caller(), schedule_id)
    await app.schedules.executor.run_due(local_caller())
    runs = (await app.schedules.queries.history(local_caller(), ListRuns(schedule_id))).runs
    found = next(one for one in runs if one.id == delivery)
    schedule = await app.schedules.queries.get(local_caller(), schedule_id)
    said = await app.host.history(schedule.what.agent_id, schedule.what.conversation_id)
    return found, str([one.event for one in said if isinstance(one.event, ToolReturn)])


def in_agent(agent: str, who: Caller) -> Caller:
    """An agent that acts for the holder of a key."""
    return Prompt(agent, replace(who, source=AgentIdSource.CREDENTIAL), "x").agent_caller


async def planned(app: App, acting: Caller, prompt: str = TRICK) -> int:
    """The number of a schedule that a person's agent makes."""
    return (await app.schedules.add(acting, NewSchedule(prompt, when=LATER))).schedule.id


PLANS = (*CHAT, "schedules:write", "schedules:read")


@shows("KEPT-03")
async def test_what_a_turn_schedules_runs_with_the_rights_of_the_turn(installation: App, agent: str) -> None:
    await remembered(installation)
    who = await caller(installation, await key(installation, "ann", *PLANS))
    args = {"prompt": TRICK.replace("@@", "@ @"), "when": LATER}
    [made] = of_kind(
        await take(
            installation.host, agent, script({"tool": "schedule_prompt", "args": args}, {"text": "."}), caller=who
        ),
        ToolReturn,
    )
    number = int(made.text.split()[3].rstrip(":"))
    await installation.schedules.update(in_agent(agent, who), number, ScheduleChange(prompt=TRICK))
    past, heard = await ran(installation, number)
    assert past.standing is RunStatus.DELIVERED
    assert "Tool 'search_memories' not found" in heard
    assert SECRET not in heard


@shows("KEPT-03")
async def test_a_schedule_goes_by_its_makers_key_as_it_is_when_it_runs(installation: App, agent: str) -> None:
    await remembered(installation)
    text = await key(installation, "ann")
    key_id = (parse_key(text) or ("", ""))[0]
    number = await planned(installation, in_agent(agent, await caller(installation, text)))
    assert SECRET in (await ran(installation, number))[1]
    successor, _ = await installation.identity.rotate_key(key_id, timedelta())
    assert (await ran(installation, number))[0].standing is RunStatus.DELIVERED, (
        "it goes on with the key that came after"
    )
    await installation.identity.revoke_key(successor.id)
    past, _ = await ran(installation, number)
    assert (past.standing, "was revoked" in (past.reason or "")) == (RunStatus.DEAD, True)


@shows("KEPT-03")
async def test_a_key_that_may_do_less_by_now_has_its_schedules_do_less(installation: App, agent: str) -> None:
    await remembered(installation)
    now = datetime.now(UTC)
    own = ApiKey("own-key-0001", b"", "mine", None, "ann", frozenset({*PLANS, "memories.read"}), now, own=True)
    await installation.keys.add(own)
    who = Caller(
        "test",
        agent,
        "ann",
        AgentIdSource.CREDENTIAL,
        verified=True,
        scopes=own.scopes,
        credential_id="key:own-key-0001",
    )
    number = await planned(installation, who)
    assert SECRET in (await ran(installation, number))[1]
    await installation.keys.change(own.id, "ann", {"scopes": frozenset(PLANS)})
    other = await planned(installation, who)
    _, heard = await ran(installation, other)
    assert SECRET not in heard
    await installation.keys.change(own.id, "ann", {"scopes": frozenset({"memories.read"})})
    past, _ = await ran(installation, number)
    assert (past.standing, "schedules:write" in (past.reason or "")) == (RunStatus.DEAD, True)


@shows("KEPT-03")
async def test_a_token_keeps_the_scopes_it_had_and_who_is_at_this_machine_keeps_all(
    installation: App, agent: str
) -> None:
    await remembered(installation)
    token = Caller(
        *("test", agent, "ann", AgentIdSource.CREDENTIAL),
        verified=True,
        scopes=frozenset(PLANS),
        credential_id="token:https://login.example.com",
    )
    assert SECRET not in (await ran(installation, await planned(installation, token)))[1]
    local = Caller("test", agent, "ann", AgentIdSource.CREDENTIAL, verified=True)
    assert SECRET in (await ran(installation, await planned(installation, local)))[1]


@shows("KEPT-03")
async def test_whoever_changes_a_schedule_lends_it_no_rights_and_gets_none_from_it(
    installation: App, agent: str
) -> None:
    await remembered(installation)
    full = Caller("test", agent, "ann", AgentIdSource.CREDENTIAL, verified=True)
    number = await planned(installation, full, "Say hello")
    thief = in_agent(agent, await caller(installation, await key(installation, "ann", *PLANS)))
    await installation.schedules.update(thief, number, ScheduleChange(prompt=TRICK))
    assert SECRET not in (await ran(installation, number))[1]
    theirs = await planned(installation, thief)
    await installation.schedules.update(full, theirs, ScheduleChange(max_repetitions=9))
    assert SECRET not in (await ran(installation, theirs))[1]


@shows("KEPT-03")
@pytest.mark.parametrize("answering", ["another", "the same person with another key"])
async def test_an_approval_lets_the_turn_go_on_with_the_rights_it_began_with(
    installation: App, agent: str, answering: str
) -> None:
    await remembered(installation)
    narrow = await caller(installation, await key(installation, "ann", *CHAT))
    asks = script(
        {"tool": "update_plan", "args": {"steps": []}},
        {"tool": "search_memories", "args": {"search": "door"}},
        {"text": "."},
    )
    conversation = (await installation.host.start_conversation(agent, "ann")).id
    events = await take(
        installation.host, agent, asks, caller=narrow, asks=frozenset({"update_plan"}), conversation_id=conversation
    )
    [request] = await installation.host.pending(agent, conversation)
    word = Approval(request.call_id, approve=True)
    if answering == "another":
        turn = of_kind(events, Started)[0].turn_id
        await answer_approvals(
            installation.host, installation.turns, installation.journal, local_caller(), turn, {word.call_id: word}
        )
        with anyio.fail_after(20):
            while any(one.running for one in await installation.turns.list(retelling.TurnQuery())):
                await anyio.lowlevel.checkpoint()
    else:
        full = await caller(installation, await key(installation, "ann"))
        await take(installation.host, agent, approvals=[word], caller=full, conversation_id=conversation)
    said = str([one.event for one in await installation.host.history(agent, conversation)])
    assert "Tool 'search_memories' not found" in said
    assert SECRET not in said


@shows("KEPT-03")
@pytest.mark.parametrize("where", ["on the agent's page", "on the turn's page", "from another person"])
async def test_whoever_approves_lends_the_turn_no_place_in_memory_that_all_share(
    installation: App, agent: str, where: str
) -> None:
    narrow = await caller(installation, await key(installation, "ann", *CHAT))
    conversation = (await installation.host.start_conversation(agent, "ann")).id
    plants = {"tool": "memory_insert", "args": {"label": "persona", "new_string": "planted"}}
    asks = script({"tool": "update_plan", "args": {"steps": []}}, plants, {"text": "."})
    events = await take(
        installation.host, agent, asks, caller=narrow, asks=frozenset({"update_plan"}), conversation_id=conversation
    )
    [request] = await installation.host.pending(agent, conversation)
    turn = of_kind(events, Started)[0].turn_id
    if where == "from another person":
        ben, word = await caller(installation, await key(installation, "ben")), Approval(request.call_id, approve=True)
        with pytest.raises(NotFound):
            await take(installation.host, agent, approvals=[word], caller=ben, conversation_id=conversation)
        assert await installation.host.pending(agent, conversation) == [request]
        return
    async with browsing(build_application(installation)) as web:
        if where == "on the agent's page":
            form = {"conversation": conversation, f"call.{request.call_id}": "approve"}
            await web.post(f"/agents/{agent}/talk/decide", form)
        else:
            await web.post(f"/turns/{turn}/answer", {"call.0": request.call_id, "word.0": "approve"})
    with anyio.fail_after(20):
        while any(one.running for one in await installation.turns.list(retelling.TurnQuery())):
            await anyio.lowlevel.checkpoint()
    told = str(
        [one.event for one in await installation.host.history(agent, conversation) if isinstance(one.event, ToolReturn)]
    )
    assert "only people who run the agent may change it" in told
    assert "planted" not in str(await installation.host.blocks(agent))


@shows("KEPT-03")
async def test_what_waits_on_the_word_of_a_key_that_was_revoked_is_given_up_and_does_not_block_what_comes(
    installation: App, agent: str
) -> None:
    text = await key(installation, "ann")
    asks = script({"tool": "update_plan", "args": {"steps": []}}, {"text": "."})
    first = await caller(installation, text)
    await take(installation.host, agent, asks, caller=first, asks=frozenset({"update_plan"}))
    conversation = first_conversation_id(agent, "ann")
    [request] = await installation.host.pending(agent, conversation)
    await installation.identity.revoke_key((parse_key(text) or ("", ""))[0])
    second = await caller(installation, await key(installation, "ann"))
    with pytest.raises(Denied, match="was revoked"):
        await take(installation.host, agent, approvals=[Approval(request.call_id, approve=True)], caller=second)
    assert not await installation.host.pending(agent, conversation)
    assert said(await take(installation.host, agent, script({"text": "here I am"}), caller=second)) == "here I am"


@shows("KEPT-03")
async def test_an_agent_shows_a_person_no_schedule_that_their_key_does_not_show_them(
    installation: App, agent: str
) -> None:
    """The operator's schedules belong to the agent and to no person; an agent that runs for the operator has them."""
    number = (await installation.schedules.add(local_caller(), NewSchedule(SECRET, agent, when=LATER))).schedule.id
    text = await key(installation, "ann", *PLANS)
    async with speaking(build_application(installation), text) as ann:
        assert (await ann.get("/v1/schedules"))["schedules"] == []
        await ann.delete(f"/v1/schedules/{number}", 404)
    tries: list[dict[str, Any]] = [
        {"name": "list_schedules", "args": {}},
        {"name": "cancel_schedule", "args": {"schedule_id": number}},
    ]
    wished = script({"tools": tries}, {"text": "."})
    heard = of_kind(await take(installation.host, agent, wished, caller=await caller(installation, text)), ToolReturn)
    assert [one.text for one in heard] == [
        "Nothing is scheduled.",
        f"Schedule {number} not found or already cancelled",
    ]
    here = of_kind(await take(installation.host, agent, wished, caller=Caller("cli")), ToolReturn)
    assert SECRET in here[0].text
    assert here[1].text == f"Schedule {number} cancelled"


@shows("KEPT-03")
async def test_what_was_planned_through_a_login_ends_with_the_key_that_allowed_it(
    settings: Settings, shop: ToolServer
) -> None:
    client = OAuthClient(client_id="notes", redirect_uris=("http://localhost/back",), scopes=(*PLANS, "memories.read"))
    async with open_app(settings.with_values(embeddings="off", oauth_clients=(client,))) as app:
        agent = await ready(app, shop)
        await remembered(app)
        text = await key(app, "ann")
        number = await planned(app, in_agent(agent, await caller(app, await logged_in(app, text))))
        assert SECRET in (await ran(app, number))[1]
        await app.identity.revoke_key((parse_key(text) or ("", ""))[0])
        past, _ = await ran(app, number)
        assert (past.standing, "was revoked" in (past.reason or "")) == (RunStatus.DEAD, True)


async def logged_in(app: App, text: str) -> str:
    """The token of a client that a person allowed with a key."""
    consent, verifier = app.identity.oauth.consent, "v" * 43
    challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("=")
    query = {
        "response_type": "code",
        "client_id": "notes",
        "redirect_uri": "http://localhost/back",
        "scope": " ".join((*PLANS, "memories.read")),
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    asked = consent.parse_authorization(*consent.find_client(query), query)
    back = await consent.allow(asked, await app.identity.prove(text))
    code = parse_qs(urlsplit(back).query)["code"][0]
    return (await app.identity.oauth.exchange(code, asked.redirect_uri, verifier)).access_token


@shows("KEPT-03")
async def test_a_task_that_wakes_an_agent_wakes_it_with_the_rights_of_whoever_wrote_it(
    installation: App, agent: str
) -> None:
    await remembered(installation)
    who = await caller(installation, await key(installation, "ann", "tasks.write", "schedules:write"))
    due = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    await installation.memory.tasks.create(
        PersonScope.for_caller(who), {"title": TRICK, "assignee": agent, "due_date": due}
    )
    [wake] = (await installation.schedules.queries.list(local_caller())).schedules
    past, heard = await ran(installation, wake.id)
    assert past.standing is RunStatus.DELIVERED
    assert "Tool 'search_memories' not found" in heard
    assert SECRET not in heard


@shows("KEPT-03")
async def test_what_a_visitor_without_a_key_has_planned_proves_nobody_when_it_runs(
    installation: App, agent: str
) -> None:
    await installation.memory.memories.create(PersonScope("local"), {"note": SECRET})
    visitor = Caller("test", agent, "local", AgentIdSource.CREDENTIAL, credential_id="local")
    assert SECRET not in (await ran(installation, await planned(installation, visitor)))[1]


@shows("KEPT-03")
@pytest.mark.parametrize("letta", ["http://127.0.0.1:9", None], ids=["letta", "built-in"])
async def test_an_agent_that_calls_back_has_the_rights_of_its_turn_and_no_more(
    settings: Settings, letta: str | None
) -> None:
    """Its own key is not limited; the turn is found by the agent, since Letta runs one turn of an agent at a time."""
    async with open_app(settings.with_values(letta_base_url=letta)) as app:
        asgi, agent_id = build_application(app), "agent-ada"
        said, body = call(
            MODERN, "promptyoself_schedule_time", {"prompt": "x", "time": "tomorrow at 9", "skip_validation": True}
        )
        said |= {"authorization": f"Bearer {await key(app, None, agent=agent_id)}"}
        narrow = await caller(app, await key(app, "ann", *CHAT))
        new = NewTurn("turn-1", agent_lock(agent_id), agent_id, "default", "ann", None, Authority.of(narrow))
        answers: list[Mapping[str, Any]] = []

        async def begin(_connection: object) -> None:
            return None

        async def run(_begun: None, _emit: object) -> TurnEnd:
            answers.append((await send(asgi, said, body)).json)
            return TurnEnd(StopReason.END_TURN)

        async with aclosing(app.turns.take(new, TurnWork(begin, run))) as events:
            _: list[Event] = [event async for event in events]
        assert "schedules:write" in str(answers[0]["error"])
        assert (await send(asgi, said, body)).structured["status"] == "success", "without such a turn it may"


async def test_a_right_over_everybodys_is_no_agents_in_a_turn(installation: App, agent: str) -> None:
    other = Caller("test", "agent-other", source=AgentIdSource.CREDENTIAL, verified=True)
    await installation.schedules.add(other, NewSchedule("theirs", when=LATER, skip_validation=True))
    root = await caller(installation, await key(installation, "root", *PLANS, "schedules:admin"))
    events = await take(installation.host, agent, script({"tool": "list_schedules"}, {"text": "."}), caller=root)
    assert of_kind(events, ToolReturn)[0].text == "Nothing is scheduled."


async def test_a_held_tool_is_refused_below_the_kit_too(installation: App, agent: str) -> None:
    who = Prompt(agent, await caller(installation, await key(installation, "ann", *CHAT)), "x").agent_caller
    answer = await installation.tools.dispatcher.call_attached(who, "shop", "send_mail", {"text": "x"}, None)
    assert (answer.ok, answer.text) == (False, str(MissingScope(rights.TOOLS_CALL)))


# A deleted agent leaves no key behind, whatever fails on the way


async def test_a_key_that_could_not_be_ended_is_ended_when_the_agent_is_deleted_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(_self: KeyStore, _key_id: str, _now: datetime) -> bool:
        raise Unavailable("The database does not answer")

    async with open_app(settings) as app, browsing(build_application(app)) as web:
        agent = await app.host.create(NewAgent("Ada"))
        key, text = await app.identity.create_key(name="laptop", agent_id=agent.id, user_id=None)
        _, others = await app.identity.create_key(name="other", agent_id="agent-other", user_id=None)
        with monkeypatch.context() as patched:
            patched.setattr(KeyStore, "revoke", away)
            await web.post(f"/agents/{agent.id}/delete", {}, 503)
        gone = text_of(await web.post(f"/agents/{agent.id}/delete"))
        assert f"Ada is deleted; its keys no longer work: {key.id}" in gone
        with pytest.raises(Unauthenticated):
            await app.identity.authenticate(text)
        assert (await app.identity.authenticate(others)).agent_id == "agent-other"
