"""Tests learning from use: credited to the search that found the tool, per tenant, deleted on demand."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import text

from frontdesk.db.engine import Database
from frontdesk.identity.model import Caller
from frontdesk.tools import learning_store as store
from frontdesk.tools.learning import NO_SEARCH_SECONDS, ToolLearning, caller_key, tenant_of
from frontdesk.tools.learning_store import CACHE_SECONDS, HEAVIEST_USE, LearnedUse, LearnedUseCache, LearningStore

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
ADA, BOB = Caller("1", "agent-1", "ada"), Caller("2", "agent-1", "bob")
MODEL = "model-1"


def vector(*numbers: float) -> NDArray[np.float32]:
    return np.array(numbers, np.float32)


def use(tool: str, query: str = "q", weight: float = 1.0, at: datetime = NOW) -> LearnedUse:
    return LearnedUse(tool, query, vector(1, 0).astype(np.float16).tobytes(), weight, at)


async def remembered(database: Database, caller: Caller, model: str = MODEL) -> list[tuple[str, float]]:
    found = await LearnedUseCache(LearningStore(database, model), lambda: 0.0).uses_of_tenant(tenant_of(caller))
    return sorted(zip(found.tools, found.weights.tolist(), strict=True))


async def test_a_use_is_credited_to_the_newest_search_that_offered_the_tool(database: Database) -> None:
    learning = ToolLearning(database, MODEL)
    learning.note_search(ADA, vector(1, 0), ["s::a", "s::b"])
    learning.note_search(ADA, vector(0, 1), ["s::b"])
    assert await learning.note_use(ADA, "s::a", 1.0)
    assert await learning.note_use(ADA, "s::b", 0.5)
    assert not await learning.note_use(ADA, "s::c", 1.0), "no search had offered it"
    assert not await learning.note_use(BOB, "s::a", 1.0), "it was not his search"
    found = await LearnedUseCache(LearningStore(database, MODEL), lambda: 0.0).uses_of_tenant("user:ada")
    rows = dict(zip(found.tools, found.vectors.tolist(), strict=True))
    assert rows == {"s::a": [1, 0], "s::b": [0, 1]}
    assert await remembered(database, BOB) == []
    assert await remembered(database, ADA, "another model") == []


async def test_a_use_may_come_to_another_replica_than_the_search(database: Database) -> None:
    clock = 0.0
    one, other = ToolLearning(database, MODEL), ToolLearning(database, MODEL, clock=lambda: clock)
    one.note_search(ADA, vector(1, 0), ["s::a"])
    assert not await other.note_use(ADA, "s::a", 1.0), "not written down yet"
    await one.flush()
    assert not await other.note_use(ADA, "s::a", 1.0), "it was asked for a moment ago"
    clock += NO_SEARCH_SECONDS
    assert await other.note_use(ADA, "s::a", 1.0)
    assert not await other.note_use(ADA, "s::a", 1.0, datetime.now(UTC) + timedelta(hours=2)), "too long ago"


async def test_no_text_of_a_query_is_stored(database: Database) -> None:
    async with database.read_transaction() as connection:
        for table in ("tool_searches", "tool_uses"):
            columns = (await connection.execute(text(f"SELECT * FROM {table}"))).keys()
            assert not {"query", "text"} & set(columns)


async def test_the_same_query_again_weighs_more_up_to_a_limit(database: Database) -> None:
    kept = LearningStore(database, MODEL)
    for _ in range(5):
        await kept.record("user:ada", use("s::a"))
    await kept.record("user:ada", use("s::a", "another"))
    assert await remembered(database, ADA) == [("s::a", 1.0), ("s::a", HEAVIEST_USE)]


async def test_a_replica_follows_what_others_learn_and_forget(database: Database) -> None:
    now = 0.0
    kept = LearningStore(database, MODEL)
    here = LearnedUseCache(kept, lambda: now)
    await kept.record("user:ada", use("s::a"))
    assert list((await here.uses_of_tenant("user:ada")).tools) == ["s::a"]
    await kept.record("user:ada", use("s::b"))
    assert list((await here.uses_of_tenant("user:ada")).tools) == ["s::a"], "it looks again in a moment"
    now += CACHE_SECONDS
    assert list((await here.uses_of_tenant("user:ada")).tools) == ["s::b", "s::a"]
    await kept.forget("user:ada")
    await kept.record("user:ada", use("s::c"))
    now += CACHE_SECONDS
    assert list((await here.uses_of_tenant("user:ada")).tools) == ["s::c"]


async def test_only_so_many_uses_of_a_tool_are_kept_the_newest(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (store, store):
        monkeypatch.setattr(module, "PER_TOOL", 3)
    kept = LearningStore(database, MODEL)
    for number in range(8):
        await kept.record("user:ada", use("s::a", str(number), 1 + number / 10))
    await kept.record("user:ada", use("s::b"))
    found = await remembered(database, ADA)
    assert [tool for tool, _ in found] == ["s::a"] * 3 + ["s::b"]
    assert [round(weight, 1) for _, weight in found] == [1.5, 1.6, 1.7, 1.0]
    async with database.read_transaction() as connection:
        assert (await connection.execute(text("SELECT count(*) FROM tool_uses"))).scalar_one() < 8


async def test_memory_holds_the_tenants_that_searched_lately(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "USES_CACHED", 2)
    kept = LearningStore(database, MODEL)
    here = LearnedUseCache(kept, lambda: 0.0)
    for name in ("ada", "bob", "cy"):
        await kept.record(f"user:{name}", use("s::a"))
        assert len(await here.uses_of_tenant(f"user:{name}")) == 1
    assert list(here._tenants) == ["user:bob", "user:cy"]


async def test_forgetting_leaves_nothing_of_a_tenant_and_all_of_the_others(database: Database) -> None:
    learning = ToolLearning(database, MODEL)
    for caller in (ADA, BOB):
        learning.note_search(caller, vector(1, 0), ["s::a"])
        await learning.note_use(caller, "s::a", 1.0)
    await learning.forget("user:ada")
    await learning.flush()
    assert await remembered(database, ADA) == []
    assert await remembered(database, BOB) == [("s::a", 1.0)]
    assert not await learning.note_use(ADA, "s::a", 1.0)
    assert await learning.recall(ADA, vector(1, 0)) == {}
    assert set(await learning.recall(BOB, vector(1, 0))) == {"s::a"}


async def test_what_is_old_is_forgotten(database: Database) -> None:
    kept = LearningStore(database, MODEL)
    await kept.record("user:ada", use("s::old", at=NOW - timedelta(days=400)))
    await kept.record("user:ada", use("s::new", at=datetime.now(UTC)))
    await ToolLearning(database, MODEL).prune()
    assert await remembered(database, ADA) == [("s::new", 1.0)]


@pytest.mark.parametrize("off", [ToolLearning.__name__, "no embedder"])
async def test_where_learning_is_off_nothing_is_remembered(database: Database, off: str) -> None:
    model = None if off == "no embedder" else MODEL
    learning = ToolLearning(database, model, enabled=model is None)
    learning.note_search(ADA, vector(1, 0), ["s::a"])
    await learning.flush()
    assert not await learning.note_use(ADA, "s::a", 1.0)
    assert await learning.recall(ADA, vector(1, 0)) == {}
    async with database.read_transaction() as connection:
        assert (await connection.execute(text("SELECT count(*) FROM tool_searches"))).scalar_one() == 0


def test_tenants_are_people_else_agents_else_this_desk() -> None:
    assert tenant_of(ADA) == "user:ada"
    assert tenant_of(Caller("1", "ada")) == "agent:ada" != tenant_of(ADA)
    assert tenant_of(Caller("1")) == "local"
    assert caller_key(ADA) != caller_key(BOB)
