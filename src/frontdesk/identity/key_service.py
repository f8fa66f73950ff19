"""Checks keys with a short cache, and lets people manage their own keys."""

import time
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Generic, TypeVar

from frontdesk.errors import Invalid, NotFound, Unauthenticated, Unavailable
from frontdesk.identity import keys, rights
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.model import Caller, Credential
from frontdesk.identity.rights import require_login
from frontdesk.identity.store import KeyStore

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class RecentCache(Generic[K, T]):
    """A cache in which each value is valid for `seconds`."""

    def __init__(self, seconds: float, size: int) -> None:
        self._seconds = seconds
        self._size = size
        self._held: dict[K, tuple[float, T]] = {}
        self._dropped = 0

    async def get_or_load(self, key: K, look: Callable[[], Awaitable[T]]) -> T:
        """The cached value, or the value that `load` returns, which is then cached."""
        now = time.monotonic()
        held = self._held.get(key)
        if held is not None and now - held[0] < self._seconds:
            return held[1]
        dropped = self._dropped
        value = await look()
        # The cache was cleared while this value was loaded, so the value may be outdated and is not cached.
        if dropped == self._dropped:
            if len(self._held) >= self._size:
                self._held.clear()
            self._held[key] = (now, value)
        return value

    def drop(self, key: K) -> None:
        self._dropped += 1
        self._held.pop(key, None)

    def clear(self) -> None:
        self._dropped += 1
        self._held.clear()


# How long a key that another process revoked may still work in this one.
KEY_CACHE_SECONDS = 2.0
KEY_CACHE_SIZE = 10_000


class KeyChecker:
    """Checks keys and caches them for a moment. Changes made in this process take effect immediately."""

    def __init__(self, store: KeyStore) -> None:
        self._store = store
        self._recent = RecentCache[str, ApiKey | None](KEY_CACHE_SECONDS, KEY_CACHE_SIZE)
        self._used: dict[str, datetime] = {}

    async def check(self, text: str) -> Credential:
        """The credential that a key proves. Raises `Unauthenticated`."""
        parsed = keys.parse_key(text)
        key = await self._recent.get_or_load(parsed[0], partial(self._store.get, parsed[0])) if parsed else None
        now = datetime.now(UTC)
        if parsed is None or key is None or not key.matches(parsed[1]) or not key.works_at(now):
            raise Unauthenticated("The API key is not valid: mistyped, expired or revoked")
        self._used[key.id] = now
        return key.credential

    def drop(self, key_id: str) -> None:
        """Load the key from the database the next time it is used."""
        self._recent.drop(key_id)

    async def save_last_used(self) -> None:
        """Store in the database when keys were last used."""
        used, self._used = self._used, {}
        try:
            await self._store.mark_used(used)
        except Unavailable:
            self._used = used | self._used
            raise


class PersonalKeys:
    """The keys that a person manages. The person is always the caller, whichever id a request names."""

    def __init__(self, store: KeyStore, drop: Callable[[str], None]) -> None:
        self._store = store
        # Called with the id of every changed key.
        self._drop = drop

    async def list(self, caller: Caller) -> Sequence[ApiKey]:
        return await self._store.list_own(require_login(caller))

    async def create(
        self, caller: Caller, name: str, scopes: frozenset[str], lifetime: timedelta | None
    ) -> tuple[ApiKey, str]:
        """A new key and its text, which is shown only once."""
        user_id, now = require_login(caller), datetime.now(UTC)
        check_own_scopes(scopes)
        wanted = ApiKey("", b"", name, None, user_id, scopes, now, keys.expiry(now, lifetime), own=True)
        key, text = keys.with_new_secret(wanted)
        await self._store.add(key)
        return key, text

    async def change(self, caller: Caller, key_id: str, changes: Mapping[str, Any]) -> ApiKey:
        """Change its `name`, its `scopes`, or whether it `is_active`."""
        user_id = require_login(caller)
        check_own_scopes(changes.get("scopes", frozenset()))
        changed = await self._store.change(key_id, user_id, {**changes, "updated_at": datetime.now(UTC)})
        self._drop(key_id)
        if changed is None:
            raise _key_not_found()
        return changed

    async def delete(self, caller: Caller, key_id: str) -> None:
        """Revoke the key, and the grants to clients that rest on it."""
        await self._own_key(caller, key_id)
        await self._store.revoke(key_id, datetime.now(UTC))
        self._drop(key_id)

    async def rotate(self, caller: Caller, key_id: str, overlap: timedelta) -> tuple[ApiKey, str]:
        """A new key that replaces this one. The old key works for `overlap` longer, under a name with its id."""
        made = await rotate_key(self._store, await self._own_key(caller, key_id), overlap)
        self._drop(key_id)
        return made

    async def _own_key(self, caller: Caller, key_id: str) -> ApiKey:
        user_id = require_login(caller)
        key = await self._store.get(key_id)
        if key is None or not key.own or key.user_id != user_id or key.revoked_at is not None:
            raise _key_not_found()
        return key


async def rotate_key(store: KeyStore, old: ApiKey, overlap: timedelta) -> tuple[ApiKey, str]:
    """A new key with the same rights. The old key works for `overlap` longer, or until it expires if that is sooner."""
    now = datetime.now(UTC)
    if not old.works_at(now):
        raise Invalid(f"Key '{old.id}' does not work any more, and nothing can take its place; make a new one")
    successor = await store.successor(old.id)
    if successor is not None:
        raise Invalid(f"Key '{old.id}' was replaced by '{successor}' already; rotate that one")
    new, text = keys.rotated_key(old, now)
    await store.replace(old, new, min(now + overlap, old.expires_at or now + overlap))
    return new, text


def check_own_scopes(scopes: frozenset[str]) -> None:
    """Check that the scopes concern only a person's own records."""
    for scope in scopes:
        if scope not in rights.MEMORY_SCOPES:
            raise Invalid(
                f"There is no scope '{scope}' for one's own keys; there are: {', '.join(rights.MEMORY_SCOPES)}"
            )


def _key_not_found() -> NotFound:
    return NotFound("API key not found")
