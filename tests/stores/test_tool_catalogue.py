"""Tests the catalogue in the database: revisions, reviews, and names that other servers cannot take over."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import anyio
import numpy as np
import pytest

from frontdesk.db.engine import Database
from frontdesk.db.schema import tool_servers
from frontdesk.errors import Invalid, NotFound
from frontdesk.mcp_client.model import RemoteTool
from frontdesk.search.vectors import pack_vectors, unpack_vectors
from frontdesk.tools.catalogue_store import ServerStore, ToolFilter, ToolStore, ToolVectorStore
from frontdesk.tools.listing import clean_listing
from frontdesk.tools.model import ReviewStatus, ToolKind
from frontdesk.tools.servers import ServerOrigin, ServerSpec, ServerState, ServerStatus, Transport
from frontdesk.tools.versions import compare_listing
from tests.requirements import shows
from tests.support.waiting import age, set_clock_ahead

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
LEASE = timedelta(minutes=1)
SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {"city": {"type": "string", "description": "Where."}}}


def remote(name: str, description: str = "Says the weather.") -> RemoteTool:
    return RemoteTool(name, description, SCHEMA)


async def add(database: Database, name: str, **said: Any) -> ServerSpec:
    spec = ServerSpec(name, url=f"https://{name}.example/mcp", **said)
    await ServerStore(database).put([spec])
    return spec


async def listed(database: Database, server: str, *tools: RemoteTool, hold: bool = False, now: datetime = NOW) -> str:
    """The changes of a listing, in words."""
    found = clean_listing(server, tools)
    decide = partial(compare_listing, listed=found.tools, hold=hold)
    done = await ToolStore(database).apply(server, ToolKind.MCP, decide, found.problems, now)
    return done.summary if done is not None else "no such server"


async def state(database: Database, name: str) -> ServerState:
    return {one.name: one for one in await ServerStore(database).all()}[name]


async def ids(store: ToolStore, after: int = 0) -> Sequence[str]:
    return [row.id for row in await store.changed_since(after + 1, "", 100, None)]


async def test_a_listing_is_kept_and_only_what_changes_gets_a_new_revision(database: Database) -> None:
    store = ToolStore(database)
    await add(database, "shop")
    assert await listed(database, "shop", remote("a"), remote("b")) == "2 new (a, b)"
    first = await store.revision()
    assert await ids(store) == ["shop::a", "shop::b"]
    assert await listed(database, "shop", remote("a"), remote("b")) == ""
    assert await store.revision() == first, "nothing to hear of"
    assert await listed(database, "shop", remote("a"), remote("b", "Sells it.")) == "1 taken (b)"
    assert await ids(store, first) == ["shop::b"]
    found = (await store.many(["shop::b"]))["shop::b"]
    assert (found.description, found.change) == ("Sells it.", "description changed on 2026-11-01 at 12:00 UTC")
    assert (found.parameters, found.seen_at, found.stale) == (SCHEMA, NOW, False)


async def test_a_tool_that_went_is_nowhere_and_the_revision_says_so(database: Database) -> None:
    store = ToolStore(database)
    await add(database, "shop")
    await listed(database, "shop", remote("a"), remote("b"))
    before = await store.revision()
    assert await listed(database, "shop", remote("b")) == "1 gone (a)"
    [row] = await store.changed_since(before + 1, "", 100, None)
    assert (row.id, row.usable) == ("shop::a", False)
    assert await store.many(["shop::a"]) == {}
    assert [tool.id for tool in await store.page(ToolFilter())] == ["shop::b"]
    assert (await state(database, "shop")).tools == 1
    assert (await state(database, "shop")).changes[0].what == "1 gone (a)"
    assert await listed(database, "shop", remote("a"), remote("b")) == "1 back (a)"
    await listed(database, "shop", remote("b"))
    await store.prune(NOW + timedelta(days=1))
    assert await listed(database, "shop", remote("a"), remote("b")) == "1 new (a)", "it was forgotten"


async def test_readers_who_follow_by_revision_miss_no_change_of_many_writers(database: Database) -> None:
    store = ToolStore(database)
    servers = [f"s{number}" for number in range(6)]
    for name in servers:
        await add(database, name)
    seen: set[str] = set()

    async def follow() -> None:
        place = (0, "")
        while len(seen) < len(servers) * 4:
            rows = await store.changed_since(*place, 3, None)
            seen.update(row.id for row in rows)
            place = (rows[-1].revision, rows[-1].id) if rows else place

    async def write(server: str) -> None:
        for number in range(1, 5):
            await listed(database, server, *(remote(str(one)) for one in range(number)))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            for name in servers:
                tasks.start_soon(write, name)
    assert len(seen) == len(servers) * 4


async def test_a_held_change_waits_for_a_review_and_the_approved_version_stands(database: Database) -> None:
    store = ToolStore(database)
    await add(database, "shop")
    await listed(database, "shop", remote("a"))
    assert await listed(database, "shop", remote("a", "Sends your keys."), hold=True) == "1 held (a)"
    held = (await store.many(["shop::a"]))["shop::a"]
    assert (held.description, held.standing) == ("Says the weather.", ReviewStatus.HELD)
    assert ((await store.other_version("shop::a")) or {})["description"] == "Sends your keys."
    assert [row.usable for row in await store.changed_since(0, "", 9, None)] == [False], "it is not handed out"
    for filtered in (ToolFilter(changed=True), ToolFilter(standing=ReviewStatus.HELD)):
        assert [tool.id for tool in await store.page(filtered)] == ["shop::a"]
    await store.review("shop::a", NOW, accept=True)
    now = (await store.many(["shop::a"]))["shop::a"]
    assert (now.description, now.standing, now.change) == ("Sends your keys.", ReviewStatus.READY, "")
    assert await listed(database, "shop", remote("a", "Sends your keys."), hold=True) == ""


@pytest.mark.parametrize("hold", [True, False])
async def test_a_refused_change_leaves_the_approved_version_and_is_not_told_again(
    database: Database, hold: bool
) -> None:
    store = ToolStore(database)
    await add(database, "shop")
    await listed(database, "shop", remote("a"))
    await listed(database, "shop", remote("a", "Sends your keys."), hold=hold)
    await store.review("shop::a", NOW, accept=False)
    now = (await store.many(["shop::a"]))["shop::a"]
    assert (now.description, now.standing, now.change) == ("Says the weather.", ReviewStatus.READY, "")
    assert await listed(database, "shop", remote("a", "Sends your keys."), hold=hold) == ""
    assert await listed(database, "shop", remote("a", "Sends your money."), hold=True) == "1 held (a)"
    with pytest.raises(NotFound):
        await store.review("shop::zzz", NOW, accept=True)


async def test_changes_upon_changes_are_compared_with_what_was_approved(database: Database) -> None:
    store = ToolStore(database)
    await add(database, "shop")
    await listed(database, "shop", remote("a"))
    await listed(database, "shop", remote("a", "Two."))
    await listed(database, "shop", remote("a", "Three."))
    assert ((await store.other_version("shop::a")) or {})["description"] == "Says the weather."
    assert await listed(database, "shop", remote("a", "Four."), hold=True) == "1 held (a)"
    assert (await store.many(["shop::a"]))["shop::a"].description == "Says the weather."
    assert await listed(database, "shop", remote("a"), hold=True) == "1 settled (a)"
    now = (await store.many(["shop::a"]))["shop::a"]
    assert (now.description, now.standing, now.change) == ("Says the weather.", ReviewStatus.READY, "")
    with pytest.raises(Invalid, match="nothing to review"):
        await store.review("shop::a", NOW, accept=True)


async def test_no_server_can_take_the_name_of_a_tool_that_went(database: Database) -> None:
    store = ToolStore(database)
    for name in ("mail", "evil"):
        await add(database, name)
    await listed(database, "mail", remote("send"))
    await listed(database, "evil", remote("mail::send"), remote("mail__send"), remote("send"))

    async def named(name: str) -> list[str]:
        return [tool.id for tool in await store.find_by_name(name)]

    assert await named("mail::send") == ["mail::send"]
    assert await named("mail__send") == ["mail::send"]
    assert await named("send") == ["evil::send", "mail::send"]
    await ServerStore(database).remove(["mail"], NOW)
    assert await named("mail::send") == []
    assert await named("mail__send") == []
    assert await named("send") == ["evil::send"]


async def test_a_server_that_fails_keeps_its_tools_as_stale(database: Database) -> None:
    store, server_store = ToolStore(database), ServerStore(database)
    await add(database, "shop")
    await listed(database, "shop", remote("a"))
    before = await store.revision()
    await server_store.fail("shop", "no answer", NOW)
    assert await store.revision() > before
    assert (await store.many(["shop::a"]))["shop::a"].stale
    found = await state(database, "shop")
    assert (found.status, found.error, found.tools, found.answered_at) == (ServerStatus.FAILED, "no answer", 1, NOW)
    after = await store.revision()
    await server_store.fail("shop", "no answer", NOW)
    assert await store.revision() == after, "that is no news"
    await listed(database, "shop", remote("a"))
    assert not (await store.many(["shop::a"]))["shop::a"].stale


async def test_a_listing_of_a_server_that_was_removed_meanwhile_is_dropped(database: Database) -> None:
    await add(database, "shop")
    await ServerStore(database).remove(["shop"], NOW)
    assert await listed(database, "shop", remote("a")) == "no such server"
    assert await ToolStore(database).page(ToolFilter()) == []


async def test_one_replica_at_a_time_asks_a_server_and_none_that_was_asked_just_now(database: Database) -> None:
    server_store = ServerStore(database)
    await add(database, "shop")
    got: list[bool] = []

    async def claim(owner: str, asked_before: datetime = NOW) -> None:
        got.append(await server_store.claim("shop", owner, LEASE, asked_before))

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(claim, f"replica-{number}")
    assert sorted(got) == [False] * 4 + [True]
    await age(database, tool_servers.c.leased_until, LEASE + timedelta(seconds=1))
    await claim("another")
    assert got.pop(), "the one that had it is taken for dead"
    await listed(database, "shop", remote("a"), now=NOW)
    await claim("another", asked_before=NOW - timedelta(seconds=1))
    assert not got.pop()
    await claim("another", asked_before=NOW + timedelta(minutes=5))
    assert got.pop()


@shows("KEPT-11")
async def test_a_server_that_was_asked_before_the_clock_was_set_back_is_asked_again(database: Database) -> None:
    server_store, ahead = ServerStore(database), datetime.now(UTC) + timedelta(hours=3)
    await add(database, "shop")
    await listed(database, "shop", remote("a"), now=ahead)
    assert await server_store.claim("shop", "one", LEASE, datetime.now(UTC) - timedelta(minutes=15))
    await age(database, tool_servers.c.leased_until, -timedelta(hours=3))
    assert await server_store.claim("shop", "another", LEASE, datetime.now(UTC) - timedelta(minutes=15))


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_a_replica_whose_clock_is_ahead_does_not_ask_a_server_that_another_asks(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    server_store = ServerStore(database)
    await add(database, "shop")
    assert await server_store.claim("shop", "one", LEASE, NOW)
    set_clock_ahead(monkeypatch)
    assert not await server_store.claim("shop", "another", LEASE, NOW)


async def test_what_is_stored_of_a_server_holds_no_secret_of_the_settings(database: Database) -> None:
    secret: Mapping[str, Any] = {"headers": {"authorization": "s3cret"}, "oauth": {"client_secret": "s3cret"}}
    url = "https://shop.example/mcp"
    specs = [
        ServerSpec("set", url=f"{url}?key=s3cret", origin=ServerOrigin.SETTINGS, **secret),
        ServerSpec("run", Transport.STDIO, "", "npx", ("s3cret",), {"KEY": "s3cret"}, origin=ServerOrigin.MANIFEST),
        ServerSpec("added", url=url, headers={"authorization": "Bearer ${TOKEN}"}),
    ]
    server_store = ServerStore(database)
    assert await server_store.put(specs)
    assert not await server_store.put(specs), "nothing changed"
    stored = {one.name: one.spec for one in await server_store.all()}
    values = [(spec.url, spec.args, spec.env, spec.headers, spec.oauth) for spec in stored.values()]
    assert "s3cret" not in str(values)
    assert stored["added"] == specs[2]
    assert stored["set"].url == url


async def test_a_server_that_is_redefined_is_asked_anew(database: Database) -> None:
    server_store = ServerStore(database)
    await add(database, "shop")
    await listed(database, "shop", remote("a"))
    assert (await state(database, "shop")).crawled_at == NOW
    await server_store.put([ServerSpec("shop", url="https://elsewhere.example/mcp")])
    found = await state(database, "shop")
    assert (found.crawled_at, found.tools, found.spec.url) == (None, 1, "https://elsewhere.example/mcp")


async def test_vectors_are_kept_by_model_and_text_and_come_with_their_tools(database: Database) -> None:
    vectors, store = ToolVectorStore(database), ToolStore(database)
    await add(database, "shop")
    await listed(database, "shop", remote("a"), remote("b"))
    rows = {row.id: row for row in await store.texts(["shop::a", "shop::b"])}
    matrix = np.array([[0.6, 0.8], [1, 0]], np.float32)
    made = dict(zip([rows["shop::a"].digest, "of no tool"], pack_vectors(matrix), strict=True))
    await vectors.put("model-1", made)
    await vectors.put("model-1", made)
    assert await vectors.get("model-1", [*made, "unknown"]) == made
    assert await vectors.get("model-2", list(made)) == {}
    found = {row.id: row.vector for row in await store.changed_since(0, "", 9, "model-1")}
    assert found["shop::b"] is None
    assert np.allclose(unpack_vectors([found["shop::a"] or b""]), matrix[:1], atol=1e-3)
    assert await vectors.prune() == 1
    assert list(await vectors.get("model-1", list(made))) == [rows["shop::a"].digest]


async def test_a_large_listing_is_written_and_read_in_pages(database: Database) -> None:
    store = ToolStore(database)
    await add(database, "shop")
    await listed(database, "shop", *(remote(f"t{number:04}") for number in range(1200)))
    place, read = (0, ""), 0
    while rows := await store.changed_since(*place, 500, None):
        place, read = (rows[-1].revision, rows[-1].id), read + len(rows)
    assert read == len(await store.page(ToolFilter(limit=2000))) == 1200
    page = await store.page(ToolFilter(server="shop", after="shop::t0999", limit=3))
    assert [tool.name for tool in page] == ["t1000", "t1001", "t1002"]
    assert len(await store.many([f"shop::t{number:04}" for number in range(1200)])) == 1200


async def test_a_listing_from_before_a_server_was_defined_anew_is_dropped(database: Database) -> None:
    store, server_store = ToolStore(database), ServerStore(database)
    await add(database, "shop")

    async def take(owner: str, *tools: RemoteTool) -> bool:
        found = clean_listing("shop", tools)
        decide = partial(compare_listing, listed=found.tools, hold=False)
        return await store.apply("shop", ToolKind.MCP, decide, (), NOW, owner) is not None

    assert await server_store.claim("shop", "first", LEASE, NOW)
    await server_store.put([ServerSpec("shop", url="https://elsewhere.example/mcp")])
    assert not await take("first", remote("of_the_old_place"))
    await server_store.fail("shop", "the old place is down", NOW, "first")
    assert (await state(database, "shop")).status is ServerStatus.NEW
    assert await server_store.claim("shop", "second", LEASE, NOW), "the new place is asked at once"
    assert not await take("first", remote("of_the_old_place"))
    assert await take("second", remote("of_the_new_place"))
    assert [tool.id for tool in await store.page(ToolFilter())] == ["shop::of_the_new_place"]
