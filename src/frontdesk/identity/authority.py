"""Remembers which credentials requested work that runs later, and checks what they may still do."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from frontdesk.errors import Denied
from frontdesk.identity import rights
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.model import KEY_CREDENTIAL_PREFIX, TOKEN_CREDENTIAL_PREFIX, Caller
from frontdesk.identity.store import KeyStore

# A rotated key has a successor. A longer chain than this does not occur in practice.
MAX_ROTATIONS = 1000


@dataclass(frozen=True, slots=True)
class Authority:
    """The credentials with which work was requested. The work may do only what every one of them allows.

    Without credentials the request came from this machine, which is not limited. `scopes` limit the work further: a
    token's scopes cannot be looked up once the token is gone.
    """

    credentials: tuple[str, ...] = ()
    scopes: frozenset[str] | None = None

    @classmethod
    def of(cls, caller: Caller) -> "Authority":
        return cls(tuple((caller.credential_id or "").split()), caller.scopes)

    @classmethod
    def from_columns(cls, credentials: str | None, scopes: str | None) -> "Authority":
        """Read the values of `columns`. Without values there are no limits."""
        if credentials is None and scopes is None:
            return UNLIMITED
        return cls(tuple((credentials or "").split()), None if scopes is None else frozenset(scopes.split()))

    @property
    def columns(self) -> dict[str, str | None]:
        """The values that the database stores."""
        scopes = None if self.scopes is None else " ".join(sorted(self.scopes))
        return {"credentials": " ".join(self.credentials) or None, "scopes": scopes}

    @property
    def is_proven(self) -> bool:
        """Whether every credential is a key or a token, and not the shared name of chat without a credential."""
        return all(one.startswith((KEY_CREDENTIAL_PREFIX, TOKEN_CREDENTIAL_PREFIX)) for one in self.credentials)

    def combined_with(self, other: "Authority") -> "Authority":
        """The rights that both authorities allow."""
        known = (*self.credentials, *(one for one in other.credentials if one not in self.credentials))
        return Authority(known, rights.intersect_scopes(self.scopes, other.scopes))

    def applied_to(self, caller: Caller) -> Caller:
        """The caller with exactly these rights."""
        shown = " ".join(self.credentials) or None
        verified = self.is_proven if shown else caller.verified
        return replace(caller, scopes=self.scopes, credential_id=shown, verified=verified)


UNLIMITED = Authority()


def limit_caller(caller: Caller, bound: Authority) -> Caller:
    """The caller with only those of its rights that the authority also allows."""
    return caller if bound == UNLIMITED else Authority.of(caller).combined_with(bound).applied_to(caller)


class AuthorityService:
    """Looks up keys again before work runs, so that revoked keys and reduced scopes take effect."""

    def __init__(self, store: KeyStore) -> None:
        self._store = store

    async def of(self, caller: Caller) -> Authority:
        """The authority of a caller. Scopes are stored only if they differ from the scopes of the caller's keys."""
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
        """The authority with the scopes that its keys have now. Raises `Denied` if one of the keys no longer works."""
        scopes = authority.scopes
        on_pages = scopes is not None and rights.INSTALLATION_ADMIN in scopes
        for one in authority.credentials:
            if one.startswith(KEY_CREDENTIAL_PREFIX):
                found = (await self._working_key(_key_id(one))).scopes
                runs_it = on_pages and found is not None and rights.INSTALLATION_ADMIN in found
                scopes = rights.intersect_scopes(scopes, rights.ALL_SCOPES if runs_it else found)
        return Authority(authority.credentials, scopes)

    async def _working_key(self, key_id: str) -> ApiKey:
        """The key, or the key that replaced it."""
        wanted, now = key_id, datetime.now(UTC)
        for _ in range(MAX_ROTATIONS):
            key = await self._store.get(wanted)
            if key is not None and key.works_at(now):
                return key
            # A revoked key ends the work it authorised. A rotated key expires, and its successor takes over.
            after = None if key is None or key.revoked_at or not key.is_active else await self._store.successor(wanted)
            if after is None:
                break
            wanted = after
        raise Denied(
            f"This was requested with the key '{key_id}', which was revoked, switched off or has expired; "
            "request it again with a working key"
        )


def _common_scopes(keys: Sequence[ApiKey]) -> frozenset[str] | None:
    scopes: frozenset[str] | None = None
    for key in keys:
        scopes = rights.intersect_scopes(scopes, key.scopes)
    return scopes


def _key_id(credential: str) -> str:
    return credential.removeprefix(KEY_CREDENTIAL_PREFIX)
