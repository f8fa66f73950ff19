"""The keys that a person makes for themselves, and manages once they have logged in."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from frontdesk.errors import Invalid, MissingScope, NotFound, Unauthenticated
from frontdesk.identity import keys, rights
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.model import Caller
from frontdesk.identity.store import KeyStore

NO_LOGIN = "Keys are managed by somebody who has logged in: show a token, not a key"


class OwnKeys:
    """A person's own: whose they are comes from the caller, whatever id is named."""

    def __init__(self, store: KeyStore, drop: Callable[[str], None]) -> None:
        self._store = store
        # Told of every key that is not what it was.
        self._drop = drop

    async def list(self, caller: Caller) -> Sequence[ApiKey]:
        return await self._store.owned(require_login(caller))

    async def create(
        self, caller: Caller, name: str, scopes: frozenset[str], lifetime: timedelta | None
    ) -> tuple[ApiKey, str]:
        """A new key and its text, which is not to be had again."""
        user_id, now = require_login(caller), datetime.now(UTC)
        check_scopes(scopes)
        wanted = ApiKey("", b"", name, None, user_id, scopes, now, keys.ending(now, lifetime), own=True)
        key, text = keys.minted(wanted)
        await self._store.add(key)
        return key, text

    async def change(self, caller: Caller, key_id: str, changes: Mapping[str, Any]) -> ApiKey:
        """Change its `name`, its `scopes`, or whether it `is_active`."""
        user_id = require_login(caller)
        check_scopes(changes.get("scopes", frozenset()))
        changed = await self._store.change(key_id, user_id, {**changes, "updated_at": datetime.now(UTC)})
        self._drop(key_id)
        if changed is None:
            raise _no_key()
        return changed

    async def delete(self, caller: Caller, key_id: str) -> None:
        """End it, and what clients were allowed on the strength of it."""
        await self._mine(caller, key_id)
        await self._store.revoke(key_id, datetime.now(UTC))
        self._drop(key_id)

    async def rotate(self, caller: Caller, key_id: str, overlap: timedelta) -> tuple[ApiKey, str]:
        """A key in its place; the old one goes on for `overlap`, under a name that says which it was."""
        made = await rotated(self._store, await self._mine(caller, key_id), overlap)
        self._drop(key_id)
        return made

    async def _mine(self, caller: Caller, key_id: str) -> ApiKey:
        user_id = require_login(caller)
        key = await self._store.get(key_id)
        if key is None or not key.own or key.user_id != user_id or key.revoked_at is not None:
            raise _no_key()
        return key


async def rotated(store: KeyStore, old: ApiKey, overlap: timedelta) -> tuple[ApiKey, str]:
    """A key with the same rights; the old one goes on for `overlap`, or until its own end if that is sooner."""
    now = datetime.now(UTC)
    if not old.works_at(now):
        raise Invalid(f"Key '{old.id}' does not work any more, and nothing can take its place; make a new one")
    successor = await store.successor(old.id)
    if successor is not None:
        raise Invalid(f"Key '{old.id}' was replaced by '{successor}' already; rotate that one")
    new, text = keys.successor(old, now)
    await store.replace(old, new, min(now + overlap, old.expires_at or now + overlap))
    return new, text


def check_scopes(scopes: frozenset[str]) -> None:
    """People grant what is theirs."""
    for scope in scopes:
        if scope not in rights.MEMORY_SCOPES:
            raise Invalid(
                f"There is no scope '{scope}' for one's own keys; there are: {', '.join(rights.MEMORY_SCOPES)}"
            )


def require_login(caller: Caller) -> str:
    """Whoever logged in; one whose token is limited may not make what is less so."""
    if caller.user_id is None or not caller.by_token:
        raise Unauthenticated(NO_LOGIN if caller.credential_id else "Authentication required")
    if not rights.allows(caller.scopes, rights.MEMORY_ADMIN):
        raise MissingScope(rights.MEMORY_ADMIN)
    return caller.user_id


def _no_key() -> NotFound:
    return NotFound("API key not found")
