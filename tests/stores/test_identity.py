"""Tests keys and shared rate limit buckets, on both databases."""

from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from frontdesk.db.engine import Database
from frontdesk.errors import Conflict
from frontdesk.identity import keys
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.store import BucketStore, KeyStore
from frontdesk.settings import Rate

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def a_key(key_id: str = "A" * 12, **values: Any) -> ApiKey:
    secret = keys.hash_secret("s" * 43)
    given: dict[str, Any] = {"agent_id": "agent-1", "user_id": None, "scopes": None, **values}
    return ApiKey(id=key_id, secret_sha256=secret, name="n", created_at=NOW, **given)


async def test_a_key_comes_back_as_it_was_stored(database: Database) -> None:
    store = KeyStore(database)
    key = a_key(user_id="u", scopes=frozenset({"metrics:read", "identity:read"}), expires_at=NOW + timedelta(days=1))
    await store.add(key)
    assert await store.get(key.id) == key
    assert await store.get("B" * 12) is None


async def test_no_scopes_and_an_empty_set_of_scopes_are_not_the_same(database: Database) -> None:
    store = KeyStore(database)
    await store.add(a_key("A" * 12, scopes=frozenset[str]()))
    await store.add(a_key("B" * 12, scopes=None))
    assert [key.scopes for key in await store.list()] == [frozenset(), None]


async def test_a_revoked_key_stays_revoked(database: Database) -> None:
    store = KeyStore(database)
    await store.add(a_key())
    assert await store.any_working(NOW)
    assert await store.revoke("A" * 12, NOW)
    assert not await store.revoke("A" * 12, NOW + timedelta(hours=1))
    assert not await store.any_working(NOW)
    stored = await store.get("A" * 12)
    assert stored is not None
    assert stored.revoked_at == NOW


async def test_the_names_of_a_persons_own_keys_differ_and_nobody_elses_do(database: Database) -> None:
    store = KeyStore(database)
    mine = {"agent_id": None, "user_id": "ann", "own": True}
    await store.add(a_key("A" * 12, **mine))
    with pytest.raises(Conflict, match="named 'n' already"):
        await store.add(a_key("B" * 12, **mine))
    await store.add(a_key("C" * 12, **mine | {"user_id": "bob"}))
    for letter in "DE":
        await store.add(a_key(letter * 12, **mine | {"own": False}))
    assert [key.id for key in await store.list_own("ann")] == ["A" * 12]
    assert await store.change("A" * 12, "bob", {"name": "m"}) is None
    assert await store.change("D" * 12, "ann", {"name": "m"}) is None, "the operator's is not hers to change"
    changed = await store.change("A" * 12, "ann", {"is_active": False, "scopes": frozenset({"tasks.read"})})
    assert changed is not None
    assert (changed.name, changed.is_active, changed.scopes) == ("n", False, {"tasks.read"})
    await store.revoke("A" * 12, NOW)
    await store.add(a_key("B" * 12, **mine))
    assert [key.id for key in await store.list_own("ann")] == ["B" * 12]


async def test_a_key_that_is_off_lets_nobody_in(database: Database) -> None:
    store = KeyStore(database)
    assert await store.is_empty()
    await store.add(a_key(is_active=False))
    assert not await store.any_working(NOW)
    assert not await store.is_empty()


async def test_use_is_noted(database: Database) -> None:
    store = KeyStore(database)
    await store.add(a_key())
    await store.mark_used({"A" * 12: NOW})
    await store.mark_used({})
    stored = await store.get("A" * 12)
    assert stored is not None
    assert stored.last_used_at == NOW


async def test_buckets_that_are_full_again_are_forgotten(database: Database) -> None:
    store = BucketStore(database)
    rate = Rate(limit=10, seconds=60)
    await store.lease("agent:old", rate, 10, 1000.0)
    await store.lease("agent:new", rate, 10, 1050.0)
    await store.prune(1001.0)
    assert (await store.lease("agent:new", rate, 1, 1050.0))[0] == 0
    assert (await store.lease("agent:old", rate, 10, 1050.0))[0] == 10


async def test_replicas_never_take_more_from_a_bucket_than_it_holds(database: Database) -> None:
    store = BucketStore(database)
    rate = Rate(limit=40, seconds=60)
    granted: list[int] = []

    async def replica() -> None:
        granted.extend([(await store.lease("agent:a", rate, 3, 1000.0))[0] for _ in range(5)])

    async with anyio.create_task_group() as replicas:
        for _ in range(4):
            replicas.start_soon(replica)
    assert sum(granted) == 40
    assert await store.lease("agent:a", rate, 3, 1000.0) == (0, 1.5)
    assert await store.lease("agent:a", rate, 3, 1003.0) == (2, 0.0)
