"""Many people at once through one server, with their tokens renewed in the middle: no answer crosses."""

import json
import secrets
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path

import anyio
import httpx2
import pytest

from tests.requirements import shows
from tests.support.desk import Desk, open_desk
from tests.support.issuer import Issuer, open_issuer
from tests.support.postgres import Postgres
from tests.support.ready import Ready
from tests.support.wire import ERAS, Era, call

pytestmark = pytest.mark.anyio
PEOPLE = 20
CALLS = 50
AT_ONCE = 100
SECONDS = 120
AUDIENCE = "frontdesk"


class Person:
    """Somebody with a token that is renewed now and then, and a word that stands in all that is theirs."""

    def __init__(self, name: str, issuer: Issuer) -> None:
        self.name = name
        self.word = f"word{secrets.token_hex(8)}"
        self._issuer = issuer
        self.renew()

    def renew(self) -> None:
        self.token = self._issuer.token(sub=self.name, aud=AUDIENCE, email=f"{self.name}@example.com")


async def _call(
    client: httpx2.AsyncClient, desk: Desk, who: Person, tool: str, given: Mapping[str, object], era: Era
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
            wrong, answers = await _storm(desk, [Person(f"person-{number}", issuer) for number in range(PEOPLE)])
    assert wrong == []
    assert answers == PEOPLE * CALLS


async def _storm(desk: Desk, people: list[Person]) -> tuple[list[str], int]:
    """Every answer that holds somebody else's word or lacks one's own, and how many there were."""
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
            # With the first token the issuer's keys are fetched, from this very process: while it is not busy yet.
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
    """Writes, then reads and writes by turns; every answer to a reader holds the person's own word."""
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
