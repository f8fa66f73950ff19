"""Tests sessions of the older era: many people at the same time, and an attacker with a session's id."""

import json
import random
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from sqlalchemy import func, select, update

from frontdesk.db.schema import mcp_session_persons, mcp_sessions
from frontdesk.errors import Unavailable
from frontdesk.identity.mcp_sessions import SESSION_LIFETIME, new_session_id
from frontdesk.memory.model import PersonScope
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.desk import Desk as DeskProcess
from tests.support.desk import open_desk
from tests.support.issuer import Issuer, open_issuer
from tests.support.memory import Desk, open_memory
from tests.support.postgres import Postgres, Ready
from tests.support.wire import ERAS, Answer, Era, call, send

# An attacker with a session's id: whatever happened in the session before, the id alone gives no wrong answer


ADDRESSES = ("/mcp/memory", "/api/mcp", "/mcp/memory/api/mcp")
# Without the header a revision applies that the SDK handles; with it, a plain call bypasses the SDK.
REVISIONS: tuple[dict[str, str], ...] = ({}, {"mcp-protocol-version": "2025-06-18"})
PEOPLE = ("ann", "bob", "cleo")
SESSIONS, STEPS, RACES = 36, 6, 5
OPENING = {
    "protocolVersion": "2024-11-05",
    "capabilities": {},
    "clientInfo": {"name": "zflow-http-client", "version": "1.0.0"},
}
STALE = "zm_revoked"
# The token arguments of a person who is not signed in, or no longer; JSON leaves out undefined values.
NO_TOKENS: tuple[dict[str, Any], ...] = (
    *({"access_token": text} for text in (STALE, "", "Bearer ", None, 7)),
    {},
    {"token": STALE},
    {"access_token": STALE, "agent_id": "no agent's id!"},
)


@dataclass(frozen=True, slots=True)
class Replicas:
    """Two servers on one database; a call reaches either. Each person's only task has their name."""

    desks: Sequence[Desk]
    keys: dict[str, str]
    chance: random.Random = field(default_factory=lambda: random.Random(2))

    async def open_session(self) -> str:
        answer = await self.ask("initialize", OPENING)
        assert answer.status == 200
        return answer.headers["mcp-session-id"]

    async def ask(self, method: str, params: dict[str, Any], **shown: str) -> Answer:
        said = {name.replace("_", "-"): value for name, value in shown.items()}
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        headers |= self.chance.choice(REVISIONS) | said
        where = self.chance.choice(self.desks).asgi
        return await send(where, headers, body, path=self.chance.choice(ADDRESSES))

    async def use(self, tool: str, arguments: dict[str, Any], **shown: str) -> Answer:
        return await self.ask("tools/call", {"name": tool, "arguments": arguments}, **shown)

    async def leave(self, session: str, person: str, token_beside: str | None = None) -> bool:
        """Leave a person's token in a session, perhaps by a call that carries one; gives whether that succeeded."""
        given = {"access_token": self.keys[person]}
        beside = {} if token_beside is None else {"x_user_auth_token": token_beside}
        answer = await self.use("set_access_token", given, mcp_session_id=session, **beside)
        return answer.status == 200 and "result" in answer.json and not answer.json["result"].get("isError", False)

    async def whose(self, session: str, **shown: str) -> str | None:
        """The owner of the shown tasks; None if the call is refused."""
        answer = await self.use("search_tasks", {}, mcp_session_id=session, **shown)
        found = [person for person in PEOPLE if f"task of {person}" in answer.body.decode()]
        assert len(found) <= 1, answer.body
        if not found:
            assert answer.status == 401 or answer.error[0] == -32010, answer.body
        return found[0] if found else None

    async def rows(self) -> int:
        counts = [select(func.count()).select_from(table) for table in (mcp_sessions, mcp_session_persons)]
        async with self.desks[0].app.database.read_transaction() as connection:
            return sum([(await connection.execute(count)).scalar_one() for count in counts])


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
async def replicas(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, ready: Ready
) -> AsyncGenerator[Replicas]:
    folder: Path = tmp_path_factory.mktemp("sessions") / "data"
    where: dict[str, object] = {"FRONTDESK_DATA": folder, "FRONTDESK_EMBEDDINGS": "off"}
    if request.param == "sqlite":
        ready.in_folder(folder)
    else:
        server: Postgres = request.getfixturevalue("postgres")
        where["FRONTDESK_DATABASE_URL"] = ready.on(server)
    async with AsyncExitStack() as opened:
        desks = [await opened.enter_async_context(open_memory(settings_with(**where))) for _ in range(2)]
        for person in PEOPLE:
            await desks[0].app.memory.tasks.create(PersonScope(person), {"title": f"A task of {person}"})
        yield Replicas(desks, {person: await desks[0].key(person) for person in PEOPLE})


@dataclass(slots=True)
class Known:
    """The expected state of a session after earlier steps: its owner, and whether it acts for anybody by itself."""

    owner: str | None = None
    token: str | None = None
    closed: bool = False

    def left(self, person: str) -> bool:
        if self.closed or self.owner not in (None, person):
            self.close()
            return False
        self.owner = self.token = person
        return True

    def close(self) -> None:
        self.token, self.closed = None, True


async def step(replicas: Replicas, session: str, known: Known) -> str:
    """Take a random step, and check the result; gives the step."""
    person, other = replicas.chance.sample(PEOPLE, 2)
    key, bearer = replicas.keys[person], f"Bearer {replicas.keys[person]}"
    done = replicas.chance.choice(
        ("leave", "leave", "leave", "fail", "header", "bearer", "stale", "both", "clear", "delete")
    )
    match done:
        case "leave":
            person = known.owner if known.owner is not None and replicas.chance.random() < 0.7 else person
            assert await replicas.leave(session, person) is known.left(person)
        case "fail":
            await replicas.use("set_access_token", replicas.chance.choice(NO_TOKENS), mcp_session_id=session)
            known.token = None
        case "header":
            assert await replicas.whose(session, x_user_auth_token=bearer) == person
            known.close()
        case "bearer":
            assert await replicas.whose(session, authorization=bearer) == person
            known.close()
        case "stale":
            assert await replicas.whose(session, x_user_auth_token=STALE) is None
            if known.owner is not None:
                known.close()
        case "both":
            assert await replicas.leave(session, other, key), "it holds, and is not kept"
            known.close()
        case "clear":
            await replicas.use("clear_auth", {}, mcp_session_id=session)
            known.token = None
        case _:
            gone = {"mcp-session-id": session}
            assert (await send(replicas.desks[0].asgi, gone, b"", path="/mcp/memory", method="DELETE")).status == 204
            known.token = None
    return f"{done} {person}"


@shows("KEPT-02")
async def test_a_session_answers_its_id_alone_for_one_person_and_never_after_a_token_came_with_a_call(
    replicas: Replicas,
) -> None:
    answered = 0
    for _ in range(SESSIONS):
        session, known, done = await replicas.open_session(), Known(), list[str]()
        for _ in range(STEPS):
            done.append(await step(replicas, session, known))
            told = await replicas.whose(session)
            assert told == known.token, (done, told, known)
            answered += told is not None
    assert answered > SESSIONS // 3, "the control: were nobody ever answered, nothing would be shown by this"


@shows("KEPT-02")
async def test_of_two_calls_at_once_neither_leaves_the_session_to_the_other(replicas: Replicas) -> None:
    for number in range(RACES):
        sessions = [await replicas.open_session() for _ in range(2)]
        async with anyio.create_task_group() as group:
            # In one session two people leave their tokens; in the other a token comes with a call meanwhile.
            for person in ("ann", "bob"):
                group.start_soon(replicas.leave, sessions[0], person)
            group.start_soon(replicas.leave, sessions[1], "ann")
            group.start_soon(replicas.leave, sessions[1], "bob", f"Bearer {replicas.keys['bob']}")
        for session in sessions:
            assert await replicas.whose(session) is None, number
            assert not await replicas.leave(session, "ann")
            assert await replicas.whose(session) is None


@shows("KEPT-02")
async def test_whoever_could_not_be_named_in_a_session_is_not_taken_for_the_person_before(replicas: Replicas) -> None:
    for wrong in NO_TOKENS:
        session = await replicas.open_session()
        assert await replicas.leave(session, "ann")
        answer = await replicas.use("set_access_token", wrong, mcp_session_id=session)
        assert "error" in answer.json or answer.json["result"]["isError"]
        assert await replicas.whose(session) is None, wrong
        assert await replicas.leave(session, "ann"), "it is still hers"
        assert await replicas.whose(session) == "ann"


@shows("KEPT-02")
async def test_a_token_that_cannot_be_checked_just_now_was_seen_all_the_same(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(_text: str) -> None:
        raise Unavailable("The issuer does not answer")

    for header in ("x_user_auth_token", "authorization"):
        session, other = [await replicas.open_session() for _ in range(2)]
        assert await replicas.leave(session, "ann")
        assert await replicas.leave(other, "ann")
        with monkeypatch.context() as patched:
            for desk in replicas.desks:
                patched.setattr(desk.app.identity, "authenticate", away)
            shown = {header: f"Bearer {replicas.keys['bob']}"}
            assert (await replicas.use("search_tasks", {}, mcp_session_id=session, **shown)).status == 503
            assert (await replicas.use("search_tasks", {}, mcp_session_id=other)).status == 503
        assert await replicas.whose(session) is None
        assert await replicas.whose(other) == "ann", "here it was her own token that could not be checked"


@shows("KEPT-02")
async def test_what_was_seen_in_a_session_is_known_for_as_long_as_it_can_be_used_and_no_longer(
    replicas: Replicas,
) -> None:
    app = replicas.desks[0].app
    session = await replicas.open_session()
    assert await replicas.whose(session, x_user_auth_token=replicas.keys["bob"]) == "bob"
    primed = await replicas.open_session()
    assert await replicas.leave(primed, "ann")
    async with app.database.transaction() as connection:
        await connection.execute(update(mcp_sessions).values(expires_at=datetime.now(UTC)))
    await app.identity.sessions.prune()
    assert await replicas.whose(primed) is None, "a token is kept for a day at most"
    assert not await replicas.leave(primed, "bob"), "the session is still hers, and by this nobody's"
    assert not await replicas.leave(session, "ann")
    assert await replicas.whose(session) is None
    async with app.database.read_transaction() as connection:
        ends = (await connection.execute(select(func.max(mcp_session_persons.c.expires_at)))).scalar_one()
    assert ends < datetime.now(UTC) + SESSION_LIFETIME + timedelta(hours=1)
    for over in (datetime.now(UTC) - SESSION_LIFETIME, datetime.now(UTC) + timedelta(days=1)):
        assert not await replicas.leave(new_session_id(over), "ann"), "once nothing is known of it, it keeps nothing"
    before = await replicas.rows()
    for _ in range(5):
        assert await replicas.whose(new_session_id(datetime.now(UTC)), x_user_auth_token=STALE) is None
        await replicas.use("clear_auth", {}, mcp_session_id=new_session_id(datetime.now(UTC)))
    assert await replicas.rows() == before, "who proves nothing has nothing written down"


# Many people through one server, with tokens renewed in the middle: no answer reaches another person


CROWD_SIZE = 20
CALLS = 50
AT_ONCE = 100
SECONDS = 120
AUDIENCE = "frontdesk"


class Person:
    """A person with a token that is sometimes renewed, and a word that is part of all their records."""

    def __init__(self, name: str, issuer: Issuer) -> None:
        self.name = name
        self.word = f"word{secrets.token_hex(8)}"
        self._issuer = issuer
        self.renew()

    def renew(self) -> None:
        self.token = self._issuer.token(sub=self.name, aud=AUDIENCE, email=f"{self.name}@example.com")


async def _call(
    client: httpx2.AsyncClient, desk: DeskProcess, who: Person, tool: str, given: Mapping[str, object], era: Era
) -> str:
    headers, body = call(era, tool, given)
    proof = {"authorization": f"Bearer {who.token}"}
    answer = await client.post(f"{desk.url}/mcp/memory", headers=headers | proof, content=body)
    assert answer.status_code == 200, answer.text
    assert not answer.json()["result"].get("isError"), answer.text
    return answer.text


def _settings(issuer: Issuer) -> dict[str, str]:
    trusted = [{"issuer": issuer.url, "audience": AUDIENCE, "jwks_url": issuer.jwks_url}]
    return {"FRONTDESK_ISSUERS": json.dumps(trusted), "FRONTDESK_EMBEDDINGS": "off"}


@shows("MEMORY-CROWD")
@pytest.mark.parametrize("shared", [False, True])
async def test_twenty_people_with_fifty_calls_each_get_their_own_answers_alone(
    tmp_path: Path, postgres: Postgres, ready: Ready, *, shared: bool
) -> None:
    with open_issuer() as issuer:
        where = {"FRONTDESK_DATABASE_URL": ready.on(postgres)} if shared else {}
        with open_desk(tmp_path / "data", **_settings(issuer), **where) as desk:
            wrong, answers = await _storm(desk, [Person(f"person-{number}", issuer) for number in range(CROWD_SIZE)])
    assert wrong == []
    assert answers == CROWD_SIZE * CALLS


async def _storm(desk: DeskProcess, people: list[Person]) -> tuple[list[str], int]:
    """Every answer that holds another person's word or lacks the caller's own, and the number of answers."""
    wrong: list[str] = []
    answers, eras, limit = 0, cycle(ERAS), anyio.CapacityLimiter(AT_ONCE)
    words = {who.word for who in people}

    async def one(who: Person, number: int) -> None:
        nonlocal answers
        tool, given = _asked(who, number)
        async with limit:
            text = await _call(client, desk, who, tool, given, next(eras))
        answers += 1
        if any(word in text for word in words - {who.word}) or (number > 0 and who.word not in text):
            wrong.append(f"{who.name}, {tool}: {text[:200]}")
        if number == CALLS // 2:
            who.renew()

    async with httpx2.AsyncClient(timeout=SECONDS) as client:
        with anyio.fail_after(SECONDS):
            # The first token makes the server fetch the issuer's keys from this same process: while it is not busy yet.
            await one(people[0], 0)
            async with anyio.create_task_group() as tasks:
                for who in people[1:]:
                    tasks.start_soon(one, who, 0)
            async with anyio.create_task_group() as tasks:
                for number in range(1, CALLS):
                    for who in people:
                        tasks.start_soon(one, who, number)
    return wrong, answers


def _asked(who: Person, number: int) -> tuple[str, Mapping[str, object]]:
    """Writes, then reads and writes by turns; every answer to a read holds the person's own word."""
    written = {"title": f"Task {number} of {who.word}", "tags": [who.word]}
    if number == 0 or number % 5 == 0:
        return "create_task", written
    kinds: list[tuple[str, Mapping[str, object]]] = [
        ("search_tasks", {"limit": 100}),
        ("add_memory", {"note": f"Memory {number} of {who.word}"}),
        ("get_timeline_items", {"limit": 50}),
        ("search_across_timeline", {"query": "task", "limit": 5}),
    ]
    return kinds[number % 4]
