"""Remembers which credentials asked for what runs later, and what they may still do."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from frontdesk.errors import Denied
from frontdesk.identity import rights
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.model import KEY_CREDENTIAL_PREFIX, TOKEN_CREDENTIAL_PREFIX, Caller
from frontdesk.identity.store import KeyStore

# A key that was rotated has a successor; more than so many in a row nobody made by hand.
MAX_ROTATIONS = 1000


@dataclass(frozen=True, slots=True)
class Authority:
    """On whose word something is done: `credentials` all count, and together allow what each of them allows.

    None of them is the word of somebody at this machine, who is not limited. `scopes` bound what may be done besides:
    those of a token cannot be looked up any more when it is gone.
    """

    credentials: tuple[str, ...] = ()
    scopes: frozenset[str] | None = None

    @classmethod
    def of(cls, caller: Caller) -> "Authority":
        return cls(tuple((caller.credential_id or "").split()), caller.scopes)

    @classmethod
    def from_columns(cls, credentials: str | None, scopes: str | None) -> "Authority":
        """As the database has it; where nothing was stored, nothing is limited."""
        if credentials is None and scopes is None:
            return UNLIMITED
        return cls(tuple((credentials or "").split()), None if scopes is None else frozenset(scopes.split()))

    @property
    def columns(self) -> dict[str, str | None]:
        """As the database has it."""
        scopes = None if self.scopes is None else " ".join(sorted(self.scopes))
        return {"credentials": " ".join(self.credentials) or None, "scopes": scopes}

    @property
    def is_proven(self) -> bool:
        """Whether each is a key or a token; those who chat without one share a name that proves nothing."""
        return all(one.startswith((KEY_CREDENTIAL_PREFIX, TOKEN_CREDENTIAL_PREFIX)) for one in self.credentials)

    def combined_with(self, other: "Authority") -> "Authority":
        """What both allow."""
        known = (*self.credentials, *(one for one in other.credentials if one not in self.credentials))
        return Authority(known, rights.intersect_scopes(self.scopes, other.scopes))

    def applied_to(self, caller: Caller) -> Caller:
        """The caller, with no other rights than these."""
        shown = " ".join(self.credentials) or None
        verified = self.is_proven if shown else caller.verified
        return replace(caller, scopes=self.scopes, credential_id=shown, verified=verified)


UNLIMITED = Authority()


def limit_caller(caller: Caller, bound: Authority) -> Caller:
    """The caller, with those of its rights that others bound it to."""
    return caller if bound == UNLIMITED else Authority.of(caller).combined_with(bound).applied_to(caller)


class AuthorityService:
    """Looks keys up anew, so that one that was revoked, or may do less by now, counts as it is."""

    def __init__(self, store: KeyStore) -> None:
        self._store = store

    async def of(self, caller: Caller) -> Authority:
        """On whose word a caller does something. Of a key that may do just what its caller may, only its id is kept."""
        found = Authority.of(caller)
        keys = [
            await self._store.get(_key_id(one)) for one in found.credentials if one.startswith(KEY_CREDENTIAL_PREFIX)
        ]
        if len(keys) != len(found.credentials) or any(key is None for key in keys):
            return found
        if _common_scopes([key for key in keys if key is not None]) == found.scopes:
            return Authority(found.credentials)
        return found

    async def current(self, authority: Authority) -> Authority:
        """The same with the scopes that its keys have now; `Denied` where one of them works no more."""
        scopes = authority.scopes
        on_pages = scopes is not None and rights.INSTALLATION_ADMIN in scopes
        for one in authority.credentials:
            if one.startswith(KEY_CREDENTIAL_PREFIX):
                found = (await self._working_key(_key_id(one))).scopes
                runs_it = on_pages and found is not None and rights.INSTALLATION_ADMIN in found
                scopes = rights.intersect_scopes(scopes, rights.ALL_SCOPES if runs_it else found)
        return Authority(authority.credentials, scopes)

    async def _working_key(self, key_id: str) -> ApiKey:
        """A key, or the one that it was rotated into."""
        wanted, now = key_id, datetime.now(UTC)
        for _ in range(MAX_ROTATIONS):
            key = await self._store.get(wanted)
            if key is not None and key.works_at(now):
                return key
            # Who revokes a key ends what it stands for; one that was rotated runs out, and its successor goes on.
            after = None if key is None or key.revoked_at or not key.is_active else await self._store.successor(wanted)
            if after is None:
                break
            wanted = after
        raise Denied(
            f"This was asked for with the key '{key_id}', which was revoked, switched off or has run out; "
            "have it asked for again with a key that works"
        )


def _common_scopes(keys: Sequence[ApiKey]) -> frozenset[str] | None:
    scopes: frozenset[str] | None = None
    for key in keys:
        scopes = rights.intersect_scopes(scopes, key.scopes)
    return scopes


def _key_id(credential: str) -> str:
    return credential.removeprefix(KEY_CREDENTIAL_PREFIX)
