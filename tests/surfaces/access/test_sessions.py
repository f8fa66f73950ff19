"""Tokens that clients of the older era leave for their session: sealed, shared by replicas, checked each time."""

import json
from datetime import UTC, datetime, timedelta

import anyio
import httpx2
import pytest
from sqlalchemy import select, update

from frontdesk.db.schema import mcp_sessions
from frontdesk.errors import Invalid, Unauthenticated
from frontdesk.settings import Settings
from tests.requirements import shows
from tests.surfaces.access.lab import MEMORY_ENDPOINT, Lab, opened, token, with_issuer

pytestmark = pytest.mark.anyio
PEOPLE = 20
OPENING = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


async def begin(lab: Lab, endpoint: str = MEMORY_ENDPOINT, method: str = "initialize") -> str | None:
    """Open a session; gives its id if there is one."""
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": OPENING if method == "initialize" else {}}
    answer = await lab.web.post(endpoint, json=call, headers={"mcp-protocol-version": "2025-06-18"})
    assert answer.status_code == 200, answer.text
    return answer.headers.get("mcp-session-id")


async def opened_session(lab: Lab) -> str:
    session_id = await begin(lab)
    assert session_id is not None
    return session_id


def person(answer: httpx2.Response) -> str | None:
    """Whom the server took the caller for."""
    return answer.json()["result"]["structuredContent"]["user_id"] if answer.status_code == 200 else None


@shows("BEHALF")
async def test_a_token_left_at_one_replica_counts_at_every_other(settings: Settings) -> None:
    async with opened(with_issuer(settings)) as here, opened(with_issuer(settings)) as there:
        ours, theirs = await opened_session(here), await opened_session(there)
        assert len({ours, theirs}) == 2
        await here.app.identity.sessions.remember(ours, token("ann"))
        await there.app.identity.sessions.remember(theirs, token("bob"))
        for lab in (here, there):
            assert person(await lab.mine(mcp_session_id=ours)) == "ann"
            assert person(await lab.mine(mcp_session_id=theirs)) == "bob"
            assert (await lab.mine()).status_code == 401
            assert (await lab.mine(mcp_session_id="0" * 64)).status_code == 401
        gone = await there.web.delete(MEMORY_ENDPOINT, headers={"mcp-session-id": ours})
        assert (gone.status_code, gone.content) == (204, b"")
        for lab in (here, there):
            answer = await lab.mine(mcp_session_id=ours)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, -32010)
            assert person(await lab.mine(mcp_session_id=theirs)) == "bob"


@shows("BEHALF")
async def test_many_sessions_at_once_get_nobody_elses_answer(lab: Lab) -> None:
    heard: dict[str, set[str | None]] = {}

    async def one(name: str) -> None:
        session_id = await opened_session(lab)
        await lab.app.identity.sessions.remember(session_id, token(name))
        heard[name] = {person(await lab.mine(mcp_session_id=session_id)) for _ in range(5)}

    async with anyio.create_task_group() as group:
        for number in range(PEOPLE):
            group.start_soon(one, f"user-{number}")
    assert heard == {f"user-{number}": {f"user-{number}"} for number in range(PEOPLE)}


async def test_only_the_memory_endpoint_opens_sessions_and_only_in_the_older_era(lab: Lab) -> None:
    assert await begin(lab, "/mcp") is None
    assert await begin(lab, method="ping") is None
    session_id = await opened_session(lab)
    await lab.app.identity.sessions.remember(session_id, token())
    at_mcp = await lab.mine("/mcp", mcp_session_id=session_id)
    assert "user_id" not in at_mcp.text, "elsewhere it says nothing"
    assert (await lab.web.delete("/mcp", headers={"mcp-session-id": session_id})).status_code == 405
    assert (await lab.web.delete(MEMORY_ENDPOINT)).status_code == 400
    assert (await lab.web.get(MEMORY_ENDPOINT, headers={"mcp-session-id": session_id})).status_code == 405


@shows("BEHALF")
async def test_what_is_kept_cannot_be_read_without_the_sessions_id(lab: Lab) -> None:
    session_id, shown = await opened_session(lab), token()
    await lab.app.identity.sessions.remember(session_id, shown)
    async with lab.app.database.read_transaction() as connection:
        [row] = (await connection.execute(select(mcp_sessions))).all()
    kept = row.id_sha256.hex() + row.sealed
    assert not any(part in kept for part in (session_id, shown, *shown.split(".")))
    other = await opened_session(lab)
    async with lab.app.database.transaction() as connection:
        await connection.execute(update(mcp_sessions).values(id_sha256=bytes.fromhex("00" * 32)))
    assert await lab.app.identity.sessions.recall(session_id) is None
    assert await lab.app.identity.sessions.recall(other) is None


@shows("BEHALF")
async def test_a_session_is_no_proof_of_its_own(lab: Lab) -> None:
    session_id = await opened_session(lab)
    await lab.app.identity.sessions.remember(session_id, token("ann"))
    stranger = await lab.mine(mcp_session_id=session_id, authorization=f"Bearer {await lab.key(agent='clerk')}")
    assert stranger.status_code == 403, "the client must be one that may name people"
    passed_on = await lab.mine(mcp_session_id=session_id, x_forwarded_for="198.51.100.7")
    assert passed_on.status_code == 401
    platform = await lab.mine(mcp_session_id=session_id, authorization=f"Bearer {await lab.key(agent='*')}")
    assert person(platform) == "ann"
    own = await lab.mine(mcp_session_id=session_id, authorization=f"Bearer {await lab.key('bob')}")
    assert person(own) == "bob", "who shows who they are is not somebody else"
    sent = await lab.mine(mcp_session_id=session_id, x_user_auth_token=token("bob"))
    assert person(sent) == "bob", "what comes with the request goes before what was left"


async def test_a_token_that_no_longer_holds_leaves_the_session_to_a_new_one(lab: Lab) -> None:
    session_id = await opened_session(lab)
    key, text = await lab.app.identity.create_key(name="", agent_id=None, user_id="ann")
    await lab.app.identity.sessions.remember(session_id, text)
    assert person(await lab.mine(mcp_session_id=session_id)) == "ann"
    await lab.app.identity.revoke_key(key.id)
    assert (await lab.mine(mcp_session_id=session_id)).status_code == 401, "it is checked each time"
    assert await begin(lab) is not None
    await lab.app.identity.sessions.remember(session_id, token("ann"))
    assert person(await lab.mine(mcp_session_id=session_id)) == "ann"


async def test_what_is_left_must_hold_and_ends_with_the_token_or_after_a_day(lab: Lab) -> None:
    sessions, session_id = lab.app.identity.sessions, await opened_session(lab)
    for wrong in (token(exp=1), token(aud="https://elsewhere.example"), "zm_\ud800", token(sub="app", azp="app")):
        with pytest.raises(Unauthenticated):
            await sessions.remember(session_id, wrong)
    for nowhere in (None, "", "not-an-id"):
        with pytest.raises(Invalid):
            await sessions.remember(nowhere, token())
        assert await sessions.recall(nowhere) is None
    now = datetime.now(UTC)
    for exp, most in ((int(now.timestamp()) + 600, timedelta(minutes=11)), (10**12, timedelta(hours=25))):
        await sessions.remember(session_id, token(exp=exp))
        async with lab.app.database.read_transaction() as connection:
            ends = (await connection.execute(select(mcp_sessions.c.expires_at))).scalar_one()
        assert now + most - timedelta(hours=2) < ends < now + most
    async with lab.app.database.transaction() as connection:
        await connection.execute(update(mcp_sessions).values(expires_at=now))
    assert await sessions.recall(session_id) is None
    await sessions.prune()
    async with lab.app.database.read_transaction() as connection:
        assert (await connection.execute(select(mcp_sessions))).all() == []


async def test_a_modern_client_is_given_no_session(lab: Lab) -> None:
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "initialize"}
    call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": OPENING})
    answer = await lab.web.post(MEMORY_ENDPOINT, content=call, headers={**headers, "content-type": "application/json"})
    assert "mcp-session-id" not in answer.headers
