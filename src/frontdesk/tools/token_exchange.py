"""Fetches OAuth tokens for tool servers, for Frontdesk itself or in exchange for the user's token."""

import asyncio
import hashlib
import json
import re
import time
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast
from urllib.parse import quote_plus, urlencode

import structlog

from frontdesk.mcp_client.http import HttpClient, HttpFailure
from frontdesk.mcp_client.model import (
    HEADER_VALUE,
    McpServer,
    McpServerUnavailable,
    McpUnauthorized,
    OAuthConfig,
    OAuthGrantType,
)

EXCHANGE_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
ON_BEHALF_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ACCESS_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - the name of a kind, no token
TOKEN_REQUEST_SECONDS = 10.0
MAX_ANSWER = 64 * 1024
TOKENS_CACHED = 1000
# A token is renewed this long before it expires; a token without an expiry is kept for a fixed time.
EARLY_SECONDS = 30.0
DEFAULT_TOKEN_SECONDS = 300.0
LONGEST_TOKEN_SECONDS = 86_400.0
ERROR_CODE = re.compile(r"[a-zA-Z0-9_.\-]{1,60}")

# What the token is for, and for whom: the user, and a digest of the user's own token.
TokenKey = tuple[OAuthConfig, str | None, bytes | None]

log = structlog.get_logger("frontdesk.tools.gateway")


@dataclass(frozen=True, slots=True)
class ServerToken:
    """An access token and the time to fetch the next one."""

    value: str = field(repr=False)
    until: float


@dataclass(slots=True)
class TokenSlot:
    """A token, and the running request for the next one, which all waiting callers share."""

    token: ServerToken | None = None
    fetching: asyncio.Task[ServerToken] | None = None


class TokenExchange:
    """Fetches tokens and keeps them until shortly before they expire.

    A token is kept per purpose and user: servers with the same settings share a token, users never do.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._now = clock
        self._slots: OrderedDict[TokenKey, TokenSlot] = OrderedDict()
        self._http = HttpClient()

    async def bearer(self, server: McpServer, user_id: str | None, subject: str | None, refused: str | None) -> str:
        """The bearer token for a server; a new token if the cached one is `refused`."""
        if server.oauth is None:
            raise McpUnauthorized(f"{server} has no `oauth` settings; add them")
        return await self.token(server, server.oauth, user_id, subject, refused)

    async def token(
        self,
        what: McpServer | str,
        oauth: OAuthConfig,
        user_id: str | None = None,
        subject: str | None = None,
        refused: str | None = None,
    ) -> str:
        """The token for these settings; error messages name `what`."""
        if subject is None or not oauth.for_person:
            # A token for Frontdesk itself is the same for every user.
            oauth, user_id, subject = _without_person(oauth), None, None
        slot = self._slot((oauth, user_id, hashlib.sha256(subject.encode()).digest() if subject else None))
        if (found := _usable_value(slot.token, refused, self._now())) is not None:
            return found
        if slot.fetching is None:
            slot.fetching = asyncio.get_running_loop().create_task(self._renew(slot, what, oauth, subject))
            # All waiting callers may be gone when it fails.
            slot.fetching.add_done_callback(lambda done: done.cancelled() or done.exception())
        return (await asyncio.shield(slot.fetching)).value

    async def close(self) -> None:
        fetching = [slot.fetching for slot in self._slots.values() if slot.fetching is not None]
        for task in fetching:
            task.cancel()
        if fetching:
            await asyncio.wait(fetching)
        await self._http.close()

    async def _renew(
        self, slot: TokenSlot, what: McpServer | str, oauth: OAuthConfig, subject: str | None
    ) -> ServerToken:
        try:
            slot.token = await self._fetch(what, oauth, subject)
            return slot.token
        finally:
            slot.fetching = None

    def _slot(self, key: TokenKey) -> TokenSlot:
        slot = self._slots.setdefault(key, TokenSlot())
        self._slots.move_to_end(key)
        if len(self._slots) > TOKENS_CACHED:
            self._slots.popitem(last=False)
        return slot

    async def _fetch(self, what: McpServer | str, oauth: OAuthConfig, subject: str | None) -> ServerToken:
        form, headers = _token_request(oauth, subject)
        try:
            async with (
                asyncio.timeout(TOKEN_REQUEST_SECONDS),
                self._http.send("POST", oauth.token_url, headers, form) as answer,
            ):
                body = b""
                async for chunk in answer.chunks():
                    body += chunk
                    if len(body) > MAX_ANSWER:
                        raise McpServerUnavailable(
                            f"The token endpoint of {what} sends too much; check oauth.token_url"
                        )
                return _read_token(what, answer.status, body, self._now())
        except (HttpFailure, TimeoutError) as error:
            reason = str(error) or "it takes too long"
            raise McpServerUnavailable(
                f"The token endpoint of {what} does not answer ({reason}); check oauth.token_url"
            ) from None


def _without_person(oauth: OAuthConfig) -> OAuthConfig:
    """The settings without a user to act for."""
    if not oauth.for_person:
        return oauth
    scope = oauth.scope
    if oauth.grant == "on_behalf_of" and scope is not None:
        # To an application itself, Entra grants all its permissions for a resource, never a single permission.
        scope = " ".join(f"{one.rpartition('/')[0]}/.default" if "/" in one else one for one in scope.split())
    return replace(oauth, grant="client_credentials", scope=scope)


def _token_request(oauth: OAuthConfig, subject: str | None) -> tuple[bytes, dict[str, str]]:
    """The form and the headers of a token request."""
    form = {
        **_grant_fields(oauth.grant, subject),
        "audience": oauth.audience,
        "resource": oauth.resource,
        "scope": oauth.scope,
    }
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "accept": "application/json",
        "accept-encoding": "identity",
    }
    if oauth.client_secret is None:
        form["client_id"] = oauth.client_id
    else:
        pair = f"{quote_plus(oauth.client_id)}:{quote_plus(oauth.client_secret.get_secret_value())}"
        headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    return urlencode({name: value for name, value in form.items() if value is not None}).encode(), headers


def _grant_fields(grant: OAuthGrantType, subject: str | None) -> dict[str, str | None]:
    match grant:
        case "client_credentials":
            return {"grant_type": grant}
        case "token_exchange":
            kinds = {"subject_token_type": ACCESS_TOKEN_TYPE, "requested_token_type": ACCESS_TOKEN_TYPE}
            return {"grant_type": EXCHANGE_GRANT, "subject_token": subject, **kinds}
        case "on_behalf_of":
            return {"grant_type": ON_BEHALF_GRANT, "assertion": subject, "requested_token_use": grant}


def _read_token(what: McpServer | str, status: int, body: bytes, now: float) -> ServerToken:
    try:
        found: object = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    told = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    value, expires, error = told.get("access_token"), told.get("expires_in"), told.get("error")
    if status != 200 or not isinstance(value, str) or not value or not HEADER_VALUE.fullmatch(value):
        # Other parts of the answer could quote the credentials that were sent.
        code = error if isinstance(error, str) and ERROR_CODE.fullmatch(error) else "no token in its answer"
        name = what if isinstance(what, str) else what.name
        log.warning("upstream_token_refused", server=name, status=status, error=code)
        if status >= 500:
            raise McpServerUnavailable(
                f"The token endpoint of {what} answers HTTP {status} ({code}); try again later", status
            )
        raise McpUnauthorized(f"The token endpoint of {what} gives no token (HTTP {status}, {code}); sign in again")
    lasts = expires if isinstance(expires, int | float) and expires > 0 else DEFAULT_TOKEN_SECONDS
    seconds = float(min(lasts, LONGEST_TOKEN_SECONDS))
    early = min(EARLY_SECONDS, seconds / 10)
    return ServerToken(value, now + seconds - early)


def _usable_value(token: ServerToken | None, refused: str | None, now: float) -> str | None:
    if token is None or token.value == refused or now >= token.until:
        return None
    return token.value
