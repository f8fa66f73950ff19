"""Several people with one agent: whatever they say and have stored, none meets what is another's.

The model does all it can: in each turn it calls every tool that it was offered, with the person's secret in every
field that takes words, and then looks for the secrets of everybody.
"""

import hashlib
import json
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
import pytest
from sqlalchemy import Table, select

from frontdesk.agents.host import Block, NewAgent
from frontdesk.app import App, open_app, running
from frontdesk.db.schema import metadata
from frontdesk.identity.rights import HOUSE_ADMIN, SCHEDULES_ADMIN, SCOPES, TOOLS_ADMIN
from frontdesk.schedule.asked import PastWanted
from frontdesk.schedule.model import Standing
from frontdesk.settings import Settings
from frontdesk.surfaces.gate import ASGIApp
from frontdesk.surfaces.http import build
from tests.requirements import shows
from tests.support.chat import Person, key
from tests.support.models import ModelServer, open_models
from tests.support.scheduling import OPERATOR
from tests.support.waiting import POLL_SECONDS
from tests.support.wire import MODERN, call

pytestmark = pytest.mark.anyio

PEOPLE = ("ann", "ben", "cleo")
ROUNDS = 2
# Stands in every secret, so that whoever looks for it finds all that they may find.
WORD = "quincewood"
RIGHTS = sorted(frozenset(SCOPES) - {HOUSE_ADMIN, SCHEDULES_ADMIN, TOOLS_ADMIN})
LABEL = re.compile(r'<block label="([^"]+)"')
CHANGES = re.compile(r"create|add|update|delete|memory_|complete|fail|accept|start|stop|schedule|cancel")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# How many requests to the model the calls of a turn are spread over.
STEPS = 4
SECONDS = 60
# What a person's own data may be asked for besides what is described: pages, and what tells of the installation.
PAGES = ("/", "/agents", "/tools/use", "/schedule", "/schedule?show=runs", "/people", "/turns", "/access", "/live/now")
LISTS = ("/metrics", "/api/health", "/api/agents/sessions", "/api/v1/schedules", "/api/v1/schedules/runs")
KEY = "sk-of-the-model"


def mark(person: str) -> str:
    """Stands in every message of a person: whose turn a request to the model is."""
    return "sender" + hashlib.sha256(person.encode()).hexdigest()[:10]


def secret(person: str, number: int) -> str:
    return f"{WORD} hidden{hashlib.sha256(f'{person}/{number}'.encode()).hexdigest()[:12]}"


def proofs(person: str) -> Sequence[str]:
    """What only stands where something of this person's is."""
    return (mark(person), *(secret(person, number).split()[1] for number in range(ROUNDS)))


def whose(text: str) -> set[str]:
    return {person for person in PEOPLE if any(one in text for one in proofs(person))}


@dataclass(slots=True)
class Installation:
    """An open application with one agent, and each person's client and session."""

    app: App
    models: ModelServer
    agent_id: str
    clients: Mapping[str, httpx2.AsyncClient]
    sessions: dict[str, str] = field(default_factory=dict[str, str])

    async def say(self, person: str, *steps: Mapping[str, Any]) -> Mapping[str, Any]:
        """Have the agent take a turn for somebody; the last request that the model had for it."""
        client = Person(self.clients[person])
        if person not in self.sessions:
            self.sessions[person] = await client.open(self.agent_id)
        words = f"{mark(person)} says @@{json.dumps(steps)}@@"
        with anyio.fail_after(SECONDS):
            await client.say(self.sessions[person], words)
            events = await client.listen(self.sessions[person])
        assert events[-1]["type"] == "end", events[-1]
        return next(one.body for one in reversed(self.models.seen) if mark(person) in json.dumps(one.body))

    async def get(self, person: str, path: str) -> httpx2.Response:
        return await self.clients[person].get(f"http://127.0.0.1:3020{path}")


@pytest.fixture(scope="module")
def models() -> Iterator[ModelServer]:
    with open_models(KEY) as server:
        yield server


@pytest.fixture
async def installation(settings: Settings, models: ModelServer) -> AsyncGenerator[Installation]:
    given = {"FRONTDESK_MODEL": "openai:fake-1", "OPENAI_BASE_URL": models.openai_url, "OPENAI_API_KEY": KEY}
    models.seen.clear()
    async with AsyncExitStack() as stack:
        more = {**settings.model_dump(exclude_unset=True), **given, "FRONTDESK_REQUIRE_AUTH": True}
        app = await stack.enter_async_context(open_app(Settings.model_validate(more)))
        await stack.enter_async_context(running(app))
        blocks = [Block("team", "Everybody is welcome.")]
        agent = await app.host.create(NewAgent("Concierge", blocks=blocks))
        keys = {person: await key(app, person, *RIGHTS) for person in PEOPLE}
        asgi = build(app)
        clients = {person: await stack.enter_async_context(_client(asgi, shown)) for person, shown in keys.items()}
        yield Installation(app, models, agent.id, clients)


@asynccontextmanager
async def _client(asgi: ASGIApp, shown: str) -> AsyncGenerator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(asgi)
    async with httpx2.AsyncClient(
        transport=transport,
        base_url="http://127.0.0.1:3020/api/agents",
        headers={"authorization": f"Bearer {shown}"},
        timeout=SECONDS,
    ) as client:
        yield client


@shows("KEPT-01")
async def test_nobody_meets_what_is_anothers_though_the_model_stores_and_looks_wherever_it_can(
    installation: Installation,
) -> None:
    for number in range(ROUNDS):
        for person in PEOPLE:
            offered = await installation.say(person)
            await _store(installation, person, secret(person, number), offered)
            await _schedule(installation, person, secret(person, number))
            await _look(installation, person, offered)
        await _delivered(installation.app, len(PEOPLE) * (number + 1))
    async with anyio.create_task_group() as tasks:
        for person in PEOPLE:
            tasks.start_soon(_look, installation, person, await installation.say(person))
    _check_requests(installation)
    await _check_answers(installation)
    await _check_erasure(installation)


async def _store(place: Installation, person: str, words: str, offered: Mapping[str, Any]) -> None:
    """Every tool with the secret in every field, once with what it needs and once with all that it takes."""
    ids = UUID.findall(json.dumps(offered["messages"]))[-1:]
    least, most = (_calls(offered, words, ids, full=full) for full in (False, True))
    calls = [*least, *(one for one in most if one not in least)]
    await place.say(person, *_in_steps(calls))


async def _look(place: Installation, person: str, offered: Mapping[str, Any]) -> None:
    """Every tool once more, in search of whatever it has of anybody's."""
    await place.say(person, *_in_steps(_calls(offered, WORD, (), full=False, only_reading=True)))


async def _schedule(place: Installation, person: str, words: str) -> None:
    """Have the agent plan a prompt for the person."""
    script = json.dumps([{"tool": "conversation_search", "args": {"query": WORD}}, {"text": f"Heard {words}"}])
    prompt = f"{mark(person)} {words} @@{script}@@"
    plan = {"tool": "schedule_prompt", "args": {"prompt": prompt, "when": "in 1 second"}}
    await place.say(person, plan, {"text": "done"})


async def _delivered(app: App, count: int) -> None:
    """Wait until that many planned prompts were answered."""
    wanted = PastWanted(standing=Standing.DELIVERED, limit=100)
    with anyio.fail_after(SECONDS):
        while True:
            if len((await app.schedules.looking.history(OPERATOR, wanted)).runs) >= count:
                return
            await anyio.sleep(POLL_SECONDS)


def _calls(
    offered: Mapping[str, Any], words: str, ids: Sequence[str], *, full: bool, only_reading: bool = False
) -> list[Mapping[str, Any]]:
    """A call of each tool that was offered; one for each memory block where a tool wants a block's label."""
    labels = LABEL.findall(json.dumps(offered["messages"]).replace('\\"', '"')) or ["human"]
    found: list[Mapping[str, Any]] = []
    for tool in offered["tools"]:
        name, schema = tool["function"]["name"], tool["function"]["parameters"]
        if only_reading and CHANGES.match(name):
            continue
        filling = Filling(words, ids, full, schema.get("$defs", {}))
        made = filling.value(schema)
        several = [{**made, "label": label} for label in labels] if "label" in made else [made]
        found += [{"name": name, "args": arguments} for arguments in several]
    return found


def _in_steps(calls: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    size = -(-len(calls) // STEPS)
    return [*({"tools": calls[at : at + size]} for at in range(0, len(calls), size)), {"text": "done"}]


@dataclass(frozen=True, slots=True)
class Filling:
    """Makes values that a JSON schema allows, as far as it tells, with the words wherever it takes words."""

    words: str
    ids: Sequence[str]
    full: bool
    definitions: Mapping[str, Any]

    def value(self, schema: Mapping[str, Any], name: str = "") -> Any:
        schema = self._resolved(schema)
        plain = {
            "integer": max(1, schema.get("minimum", 1)),
            "number": max(1, schema.get("minimum", 1)),
            "boolean": True,
        }
        match schema:
            case {"const": fixed} | {"enum": [fixed, *_]}:
                return fixed
            case {"type": "object"}:
                fields = schema.get("properties", {})
                wanted = fields if self.full else schema.get("required", ())
                return {field: self.value(fields.get(field, {}), field) for field in wanted}
            case {"type": "array"}:
                return [self.value(schema.get("items", {}), name)]
            case _:
                return plain.get(schema.get("type", "string"), self._text(name))

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while True:
            match schema:
                case {"$ref": where}:
                    schema = self.definitions[where.rpartition("/")[2]]
                case {"anyOf": [first, *_]} | {"oneOf": [first, *_]} | {"allOf": [first, *_]}:
                    schema = first
                case _:
                    return schema

    def _text(self, name: str) -> str:
        """Words, but for fields that take nothing but an id or a moment."""
        if name == "id" or name.endswith("_id"):
            return next(iter(self.ids), self.words)
        if name.endswith(("_at", "_date", "date_from", "date_to")):
            return "2030-01-01T10:00:00Z"
        return {"date": "2026-11-20", "when": "every day at 9", "zone": "UTC", "timezone": "UTC"}.get(name, self.words)


def _check_requests(place: Installation) -> None:
    """Each request to the model is of one person, and holds nothing of another."""
    assert len(place.models.seen) > len(PEOPLE) * ROUNDS * 3
    asked = [json.dumps(one.body, ensure_ascii=False) for one in place.models.seen if "messages" in one.body]
    mixed = [text for text in asked if len(whose(text)) != 1]
    assert not mixed, f"{len(mixed)} of {len(asked)} requests hold the words of {whose(mixed[0])}: {_around(mixed[0])}"
    # What it learned of somebody came back to them: the test would see it elsewhere too.
    assert any(_system(one.body).count("hidden") for one in place.models.seen)


def _system(body: Mapping[str, Any]) -> str:
    return json.dumps([one for one in body.get("messages", ()) if one["role"] in ("system", "developer")])


def _around(text: str) -> str:
    found = [at for person in PEOPLE for one in proofs(person) if (at := text.find(one)) >= 0]
    return " … ".join(text[max(0, at - 200) : at + 60] for at in found)


async def _check_answers(place: Installation) -> None:
    """Whatever a person asks, of all there is to ask, tells them nothing of another."""
    rows = await _rows(place.app)
    ids = sorted({str(row[name]) for found in rows.values() for row in found[-1:] for name in row if name == "id"})
    described = (await place.get("ben", "/api/openapi.json")).json()["paths"]
    routes = [path for path, operations in described.items() if "get" in operations and not path.endswith("/stream")]
    asked = [f"/api{path}" if not path.startswith("/api") else path for path in routes]
    plain = [path for path in asked if "{" not in path]
    filled = [re.sub(r"{[^}]+}", one, path) for path in asked if "{" in path for one in ids]
    queries = [f"{path}?q={WORD}&from=2020-01-01&to=2031-01-01&limit=100" for path in plain]
    wrong: list[str] = []
    heard = ""
    for path in (*PAGES, *LISTS, *plain, *queries, *filled):
        answer = await place.get("ben", path)
        heard += answer.text
        if whose(answer.text) - {"ben"}:
            wrong.append(f"GET {path}: {_around(answer.text)}")
    for address in ("/mcp", "/mcp/memory"):
        wrong += [told async for told in _wrong_tools(place, address, ids)]
    assert not wrong, "\n".join(wrong)
    assert whose(heard) == {"ben"}


async def _wrong_tools(place: Installation, address: str, ids: Sequence[str]) -> AsyncGenerator[str]:
    """What MCP tools that only read tell Ben of others."""
    url = f"http://127.0.0.1:3020{address}"
    headers, body = call(MODERN)
    listing: dict[str, Any] = {**json.loads(body), "method": "tools/list"}
    headers = {**headers, "mcp-method": "tools/list"}
    del headers["mcp-name"], listing["params"]["name"], listing["params"]["arguments"]
    listed = await place.clients["ben"].post(url, headers=headers, json=listing)
    for tool in listed.json()["result"]["tools"]:
        if not tool.get("annotations", {}).get("readOnlyHint"):
            continue
        given = Filling(WORD, (), False, tool["inputSchema"].get("$defs", {})).value(tool["inputSchema"])
        tries = [given, *({**given, name: one} for name in given if name.endswith("id") for one in ids)]
        for arguments in tries:
            headers, body = call(MODERN, tool["name"], arguments)
            answer = await place.clients["ben"].post(url, headers=headers, content=body)
            if whose(answer.text) - {"ben"}:
                yield f"{address} {tool['name']} {arguments}: {_around(answer.text)}"


async def _rows(app: App) -> Mapping[str, Sequence[Mapping[str, object]]]:
    """All that is in the database."""
    found: dict[str, Sequence[Mapping[str, object]]] = {}
    tables: Sequence[Table] = metadata.sorted_tables
    async with app.database.reading() as connection:
        for table in tables:
            found[table.name] = [dict(row) for row in (await connection.execute(select(table))).mappings()]
    return found


def _holding(rows: Mapping[str, Sequence[Mapping[str, object]]], person: str) -> set[str]:
    return {name for name, found in rows.items() if person in whose(str(found))}


async def _check_erasure(place: Installation) -> None:
    """Of somebody who is erased nothing is left in any table; of the others all."""
    await place.app.journal.flush()
    before = await _rows(place.app)
    kept = {person: _holding(before, person) for person in PEOPLE}
    assert {"messages", "tasks", "schedules", "turns"} & kept["ann"], kept["ann"]
    client = place.clients["ann"]
    gone = await client.request("DELETE", "http://127.0.0.1:3020/api/user/data", json={"confirm": "erase"})
    assert gone.status_code == 200, gone.text
    after = await _rows(place.app)
    left = {name: _around(str(after[name])) for name in _holding(after, "ann")}
    assert not left, left
    assert {person: _holding(after, person) for person in ("ben", "cleo")} == {
        person: kept[person] for person in ("ben", "cleo")
    }
