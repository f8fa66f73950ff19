"""Tests the catalogue at work: loads, lists real servers, embeds once, follows other replicas, stays searchable."""

import hashlib
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import numpy as np
import pytest
from sqlalchemy import select, update

from frontdesk.agents.host import HeldTool
from frontdesk.app import open_app
from frontdesk.db import schema
from frontdesk.db.engine import Database
from frontdesk.embedding import Vectors
from frontdesk.errors import Conflict, Denied, Invalid, NotFound, RateLimited, Unavailable
from frontdesk.identity.model import Caller
from frontdesk.journal.model import EntryKind as JournalKind
from frontdesk.journal.model import Outcome
from frontdesk.journal.store import JournalQuery as Journalled
from frontdesk.mcp_client.pool import KnownServers, McpClientPool
from frontdesk.settings import Settings
from frontdesk.tools import catalogue, catalogue_store, index_sync
from frontdesk.tools.access import PermittedTools
from frontdesk.tools.calls import CallResult
from frontdesk.tools.catalogue import Catalogue
from frontdesk.tools.catalogue_store import ToolFilter
from frontdesk.tools.crawler import CrawlPolicy, CrawlStage, ListHostTools
from frontdesk.tools.finder import ExcludedHostTools, SearchTools, ToolFinder, ToolSearchResults
from frontdesk.tools.index_segments import IndexQuery
from frontdesk.tools.learning import ToolLearning
from frontdesk.tools.model import ReviewStatus, ToolKind
from frontdesk.tools.server_registry import ServerSources
from frontdesk.tools.servers import ServerOrigin, ServerSpec, ServerStatus
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.tool_servers import open_tool_server, tool, tools
from tests.support.waiting import until

SECONDS = 20


@dataclass(slots=True)
class Toy:
    """An embedder whose vectors mean nothing; it remembers the texts that it got."""

    name: str = "toy-1"
    dimensions: int = 8
    away: bool = False
    texts: list[str] = field(default_factory=list[str])

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if self.away:
            raise Unavailable("the model is away")
        self.texts += texts
        digests = [hashlib.sha256(text.encode()).digest()[:8] for text in texts]
        found = np.array([list(digest) for digest in digests], np.float32)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Replica:
    """A catalogue, and its register of servers."""

    catalogue: Catalogue
    servers: KnownServers

    def found(self, text: str) -> list[str]:
        return [hit.id for hit in self.catalogue.index.search(IndexQuery(text))]


@asynccontextmanager
async def opened(
    database: Database,
    *settings: ServerSpec,
    embedder: Toy | None = None,
    manifest: Path | None = None,
    offered: ListHostTools | None = None,
    hold: bool = False,
) -> AsyncGenerator[Replica]:
    servers, clients = KnownServers(), McpClientPool()
    manners = CrawlPolicy(timedelta(minutes=15), SECONDS, hold)
    named = ServerSources(settings, manifest)
    catalogue = Catalogue(database, servers, clients, embedder, named=named, offered=offered, manners=manners)
    try:
        await catalogue.load()
        await catalogue.declare()
        yield Replica(catalogue, servers)
    finally:
        await clients.close()


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[Database]:
    """The peculiarities of PostgreSQL are tested with the stores, and here with two replicas."""
    found = await Database.open(settings_with(FRONTDESK_DATA=tmp_path / "data"))
    yield found
    await found.close()


def spec(name: str, url: str, hold_changes: bool | None = None) -> ServerSpec:
    return ServerSpec(name, url=url, origin=ServerOrigin.SETTINGS, hold_changes=hold_changes)


async def test_tools_of_a_server_are_found_by_their_words_and_embedded_once(database: Database) -> None:
    toy = Toy()
    with open_tool_server("shop", [tool("send_mail", "Sends a letter."), *tools(f"t{n}" for n in range(40))]) as shop:
        async with opened(database, spec("shop", shop.url), embedder=toy) as here:
            [step] = await here.catalogue.refresh()
            assert (step.stage, step.tools) == (CrawlStage.LISTED, 41)
            assert here.found("letter")[0] == "shop::send_mail"
            assert here.catalogue.progress().embedded == 0
            await here.catalogue.embed_missing()
            assert here.catalogue.progress().embedded == here.catalogue.progress().tools == len(toy.texts) == 41
            shop.tools[0] = tool("send_mail", "Sends a parcel.")
            await here.catalogue.refresh()
            await here.catalogue.embed_missing()
            assert len(toy.texts) == 42, "only what changed"
            assert here.found("parcel")[0] == "shop::send_mail"
        async with opened(database, spec("shop", shop.url), embedder=toy) as again:
            assert again.found("parcel")[0] == "shop::send_mail", "before anybody is asked"
            assert again.catalogue.progress().embedded == 41
            assert shop.listings == 2
    assert len(toy.texts) == 42


async def test_two_replicas_stay_in_step(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "FOLLOW_SECONDS", 0.02)
    monkeypatch.setattr(index_sync, "LOOK_SECONDS", 0.02)
    one, two = await Database.open(settings), await Database.open(settings)
    toys = Toy(), Toy()
    with open_tool_server("shop", tools(f"first_{n}" for n in range(70))) as shop:
        async with (
            opened(one, embedder=toys[0]) as here,
            opened(two, embedder=toys[1]) as there,
            anyio.create_task_group() as tasks,
        ):
            for replica in (here, there):
                tasks.start_soon(replica.catalogue.run)
            await here.catalogue.add(ServerSpec("shop", url=shop.url))
            await until(lambda: len(there.catalogue.index) == 70)
            assert there.servers.names() == ["shop"]
            await until(lambda: all(each.catalogue.progress().embedded == 70 for each in (here, there)))
            shop.tools = tools(["second"])
            await there.catalogue.refresh(["shop"])
            await until(lambda: here.found("second") == ["shop::second"] and not here.found("first"))
            assert await here.catalogue.get("shop::first_0") is None
            assert here.catalogue.revision == there.catalogue.revision
            await there.catalogue.remove("shop")
            await until(lambda: len(here.catalogue.index) == 0 and here.servers.names() == [])
            tasks.cancel_scope.cancel()
    await one.close()
    await two.close()
    assert len({text for toy in toys for text in toy.texts}) == 71
    # Two processes that begin at the same moment may both embed a tool; neither embeds one twice.
    assert all(len(set(toy.texts)) == len(toy.texts) for toy in toys)


async def test_what_settings_name_goes_when_they_no_longer_do_and_what_was_added_stays(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue_store, "LAPSE", timedelta())
    with open_tool_server("a", tools(["one"])) as a, open_tool_server("b", tools(["two"])) as b:
        async with opened(database, spec("shop", a.url), spec("other", b.url)) as here:
            await here.catalogue.add(ServerSpec("kept", url=b.url))
            await here.catalogue.refresh()
            assert len(here.catalogue.index) == 3
            with pytest.raises(Conflict, match="settings"):
                await here.catalogue.add(ServerSpec("shop", url=b.url))
            with pytest.raises(Conflict, match="settings"):
                await here.catalogue.remove("shop")
        async with opened(database, spec("kept", a.url)) as here:
            assert [state.name for state in here.catalogue.servers()] == ["kept"]
            await here.catalogue.refresh()
            assert here.found("one") == ["kept::one"], "settings come before what was added"
        async with opened(database) as here:
            await here.catalogue.refresh()
            assert here.found("two") == ["kept::two"]
            await here.catalogue.remove("kept")
            assert here.catalogue.servers() == []
            assert len(here.catalogue.index) == 0
            with pytest.raises(NotFound):
                await here.catalogue.remove("kept")


async def test_replicas_whose_settings_differ_do_not_drop_each_others_servers(settings: Settings) -> None:
    database = await Database.open(settings)
    async with (
        opened(database, spec("old", "https://old.example")) as one,
        opened(database, spec("new", "https://new.example")) as other,
    ):
        for replica in (one, other):
            await replica.catalogue.declare()
        names = [state.name for state in one.catalogue.servers()]
        assert names == (["new", "old"] if database.shared else ["old"]), "SQLite is one process's alone"
        assert one.servers.names() == ["old"]
    await database.close()


async def test_a_server_that_cannot_be_reached_as_it_was_added_is_refused(database: Database) -> None:
    async with opened(database) as here:
        with pytest.raises(Invalid, match="NOWHERE_SET"):
            await here.catalogue.add(ServerSpec("shop", url="https://x.example", headers={"a": "${NOWHERE_SET}"}))
        assert here.catalogue.servers() == []


async def test_one_server_without_its_secret_is_reported_and_the_others_work(database: Database) -> None:
    with open_tool_server("shop", tools(["one"])) as shop:
        broken = ServerSpec("broken", url="https://x.example/${NOWHERE_SET}", origin=ServerOrigin.SETTINGS)
        async with opened(database, broken, spec("shop", shop.url)) as here:
            await here.catalogue.refresh()
            states = {state.name: state for state in here.catalogue.servers()}
            assert states["shop"].status is ServerStatus.OK
            assert "NOWHERE_SET" in states["broken"].error
            assert here.servers.names() == ["shop"]


async def test_the_hosts_own_tools_are_in_the_catalogue(database: Database) -> None:
    async def offered() -> Sequence[HeldTool]:
        return [HeldTool("archival_search", "Searches the archive.", parameters={"type": "object"})]

    async with opened(database, offered=offered) as here:
        await here.catalogue.refresh()
        [found] = await here.catalogue.page(ToolFilter(kind=ToolKind.HOST))
        assert (found.id, found.server, found.kind) == ("host::archival_search", "host", ToolKind.HOST)
        assert here.servers.names() == []
        assert here.found("archive") == ["host::archival_search"]


async def test_a_manifests_tools_are_known_without_asking_and_a_broken_one_changes_nothing(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue_store, "LAPSE", timedelta())
    path = tmp_path / "manifest.json"
    listed = {"url": "https://nowhere.invalid/mcp", "tools": [{"name": "mow", "description": "Mows the lawn."}]}
    path.write_text(json.dumps({"mcpServers": {"garden": listed}}))
    async with opened(database, manifest=path) as here:
        await here.catalogue.refresh()
        assert here.found("lawn") == ["garden::mow"]
        path.write_text("{")
        await here.catalogue.declare()
        assert here.found("lawn") == ["garden::mow"]
        assert "not valid JSON" in here.catalogue.progress().trouble
        path.write_text(json.dumps({"mcpServers": {}}))
        await here.catalogue.declare()
        assert here.found("lawn") == []
        assert here.catalogue.progress().trouble == ""


async def test_a_held_change_is_not_found_until_it_is_accepted(database: Database) -> None:
    with open_tool_server("shop", tools(["send"])) as shop:
        async with opened(database, spec("shop", shop.url), hold=True) as here:
            await here.catalogue.refresh()
            shop.tools = [tool("send", "Sends everything to me.")]
            await here.catalogue.refresh()
            assert here.found("send") == []
            held = await here.catalogue.get("shop::send")
            assert held is not None
            assert (held.standing, held.description) == (ReviewStatus.HELD, "Does send.")
            accepted = await here.catalogue.review("shop::send", accept=True)
            assert accepted is not None
            assert (accepted.standing, accepted.description) == (ReviewStatus.READY, "Sends everything to me.")
            assert here.found("everything") == ["shop::send"]


async def test_a_servers_own_word_on_holding_changes_counts(database: Database) -> None:
    with open_tool_server("shop", tools(["send"])) as shop:
        async with opened(database, spec("shop", shop.url, hold_changes=False), hold=True) as here:
            await here.catalogue.refresh()
            shop.tools = [tool("send", "Sends it all.")]
            await here.catalogue.refresh()
            found = await here.catalogue.get("shop::send")
            assert found is not None
            assert (found.standing, found.description) == (ReviewStatus.READY, "Sends it all.")
            assert found.change.startswith("description changed")


async def test_names_that_read_like_another_servers_tool_mean_nothing_else(database: Database) -> None:
    with open_tool_server("a", tools(["send"])) as a, open_tool_server("b", tools(["a__mow", "a::mow", "send"])) as b:
        async with opened(database, spec("a", a.url), spec("b", b.url)) as here:
            await here.catalogue.refresh()

            async def means(name: str) -> list[str]:
                return [tool.id for tool in await here.catalogue.resolve(name)]

            assert await means("a__send") == await means("a::send") == ["a::send"]
            assert await means("a__mow") == await means("a::mow") == []
            assert await means("b::a__mow") == ["b::a__mow"]
            assert await means("send") == ["a::send", "b::send"]


class Topics(Toy):
    """An embedder that knows two topics, mail and weather, and can be made to stop before a text."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if self.away and len(texts) > 1:
            raise Unavailable("the model reads on")
        topics = (("mail", "parcel"), ("rain", "forecast"))
        found = np.array([[any(word in text for word in words) for words in topics] + [0.1] for text in texts])
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


@shows("KEPT-11")
async def test_while_new_tools_are_read_they_are_found_by_words_and_the_others_as_before(database: Database) -> None:
    topics = Topics()
    known = [tool("send", "Delivers a parcel."), tool("look_up", "Shows the forecast.")]
    fresh = [tool("clock", "Tells the time."), *tools(f"new_{n}" for n in range(60))]
    with open_tool_server("shop", known) as shop, open_tool_server("more", fresh) as more:
        async with opened(database, spec("shop", shop.url), embedder=topics) as here:
            await here.catalogue.refresh()
            await here.catalogue.embed_missing()
            learning = ToolLearning(database, topics.name, enabled=False)
            finder = ToolFinder(here.catalogue, topics, learning, ExcludedHostTools())

            async def find(query: str) -> ToolSearchResults:
                return await finder.find_tools(Caller("req-1"), PermittedTools(), SearchTools(query))

            assert (await find("will it rain")).findings[0].tool.id == "shop::look_up"
            topics.away = True
            await here.catalogue.add(ServerSpec("more", url=more.url))
            found = await find("will it rain")
            assert (found.by_meaning, found.unread) == (True, 61)
            assert (found.findings[0].tool.id, found.findings[0].meaning > 90) == ("shop::look_up", True)
            by_words = await find("tells the time")
            assert (by_words.findings[0].tool.id, by_words.findings[0].meaning) == ("more::clock", 0)
            topics.away = False
            await here.catalogue.embed_missing()
            assert (await find("will it rain")).unread == 0


async def test_a_model_that_is_away_leaves_search_by_words_and_is_reported(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_sync, "EMBED_PAUSES", (0.02,))
    toy = Toy(away=True)
    with open_tool_server("shop", tools(["send"])) as shop:
        async with opened(database, spec("shop", shop.url), embedder=toy) as here, anyio.create_task_group() as tasks:
            tasks.start_soon(here.catalogue.run)
            await until(lambda: here.catalogue.progress().trouble == "the model is away")
            assert here.found("send") == ["shop::send"]
            toy.away = False
            await until(lambda: here.catalogue.progress().embedded == 1)
            await until(lambda: here.catalogue.progress().trouble == "")
            tasks.cancel_scope.cancel()


async def test_a_vector_that_was_being_made_while_its_tool_changed_is_not_given_to_it(database: Database) -> None:
    asked, go_on = anyio.Event(), anyio.Event()

    class Slow(Toy):
        async def embed(self, texts: Sequence[str]) -> Vectors:
            asked.set()
            await go_on.wait()
            return await Toy.embed(self, texts)

    with open_tool_server("shop", tools(["send", "mow"])) as shop:
        async with (
            opened(database, spec("shop", shop.url), embedder=Slow()) as here,
            anyio.create_task_group() as tasks,
        ):
            await here.catalogue.refresh()
            tasks.start_soon(here.catalogue.embed_missing)
            await asked.wait()
            shop.tools[0] = tool("send", "Sends something else.")
            await here.catalogue.refresh()
            go_on.set()
        assert here.catalogue.index.missing_vectors() == ["shop::send"]


async def test_a_model_that_breaks_in_no_foreseen_way_stops_nothing_else(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_sync, "EMBED_PAUSES", (0.02,))

    class Odd(Toy):
        async def embed(self, texts: Sequence[str]) -> Vectors:
            if self.away:
                raise RuntimeError("out of memory")
            return await Toy.embed(self, texts)

    toy = Odd(away=True)
    with open_tool_server("shop", tools(["send"])) as shop:
        async with opened(database, spec("shop", shop.url), embedder=toy) as here, anyio.create_task_group() as tasks:
            tasks.start_soon(here.catalogue.run)
            await until(lambda: here.catalogue.progress().trouble == "the model fails; the log says where")
            toy.away = False
            await until(lambda: here.catalogue.progress().embedded == 1)
            tasks.cancel_scope.cancel()
        assert here.catalogue.index.missing_vectors() == []


async def test_a_tool_that_waits_for_a_review_is_not_called_either_once_its_server_lists_it_no_more(
    tmp_path: Path,
) -> None:
    settings = settings_with(
        FRONTDESK_DATA=tmp_path / "data", FRONTDESK_EMBEDDINGS="off", FRONTDESK_HOLD_CHANGED_TOOLS="true"
    )
    with open_tool_server("shop", tools(["send", "mow"])) as shop:
        async with open_app(settings) as app:
            catalogue, who = app.tools.catalogue, Caller("request-1", "agent-1")
            await catalogue.add(ServerSpec("shop", url=shop.url))
            for listed in ([tool("send", "Sends it all to me."), tool("mow")], tools(["mow"])):
                shop.tools = listed
                await catalogue.refresh()
                outcome = await app.tools.dispatcher.call_attached(who, "shop", "send", {"text": "x"}, None)
                assert (outcome.ok, shop.called) == (False, [])
                assert "is held back until somebody has looked at the change" in outcome.text
            assert (await app.tools.dispatcher.call_attached(who, "shop", "mow", {"text": "x"}, None)).ok


async def test_what_went_long_ago_is_forgotten_soon_after_the_start(database: Database) -> None:
    async def known() -> Sequence[str]:
        async with database.read_transaction() as connection:
            return (await connection.execute(select(schema.tools.c.id))).scalars().all()

    async def forgotten() -> None:
        with anyio.fail_after(SECONDS):
            while True:
                if await known() == ["shop::mow"]:
                    return
                await anyio.sleep(0.01)

    with open_tool_server("shop", tools(["send", "mow"])) as shop:
        async with opened(database, spec("shop", shop.url)) as here:
            await here.catalogue.refresh()
            shop.tools = tools(["mow"])
            await here.catalogue.refresh()
            async with database.transaction() as connection:
                gone = update(schema.tools).where(schema.tools.c.gone.is_(True))
                await connection.execute(gone.values(changed_at=datetime(2020, 1, 1, tzinfo=UTC)))
            assert sorted(await known()) == ["shop::mow", "shop::send"]
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(here.catalogue.run)
                await forgotten()
                tasks.cancel_scope.cancel()


async def test_an_agents_model_is_not_told_where_the_database_is(tmp_path: Path) -> None:
    async def away(caller: Caller) -> PermittedTools:
        raise Unavailable(f"The database at db.internal is away for {caller.agent_id}", public="The database is away")

    async with open_app(settings_with(FRONTDESK_DATA=tmp_path / "data", FRONTDESK_EMBEDDINGS="off")) as app:
        app.tools.dispatcher._allowed.permitted_tools = away
        told = await app.tools.dispatcher.call_attached(Caller("request-1", "agent-1"), "shop", "send", {}, None)
    assert (told.text, told.ok) == ("The database is away", False)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Unavailable("the database is away"), Outcome.FAILED),
        (ZeroDivisionError("a mistake"), Outcome.FAILED),
        (Denied("not for you"), Outcome.DENIED),
        (RateLimited("agent-1", 1), Outcome.LIMITED),
        (Invalid("no such argument"), Outcome.REFUSED),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_the_journal_tells_how_a_call_of_a_tool_ended(tmp_path: Path, error: Exception, outcome: Outcome) -> None:
    async def fails(*_: object, **__: object) -> CallResult:
        raise error

    with open_tool_server("shop", tools(["send"])) as shop:
        async with open_app(settings_with(FRONTDESK_DATA=tmp_path / "data", FRONTDESK_EMBEDDINGS="off")) as app:
            await app.tools.catalogue.add(ServerSpec("shop", url=shop.url))
            app.tools.dispatcher.gateway.call = fails
            with pytest.raises(type(error)):
                await app.tools.dispatcher.call(Caller("request-1", "agent-1"), "shop::send", {})
            await app.journal.flush()
            [(_, row)] = await app.journal.read(Journalled())
    assert (row.kind, row.action, row.outcome, row.reason) == (
        JournalKind.TOOL,
        "shop::send",
        outcome,
        type(error).__name__,
    )
