"""Connects to one Letta server, translates its errors, and puts Frontdesk's key into a header that Letta fills in."""

import json
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import cast

import anyio
import httpx
from letta_client import (
    APIConnectionError,
    APIError,
    APIStatusError,
    APITimeoutError,
    AsyncLetta,
    AuthenticationError,
    BadRequestError,
    ConflictError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    Timeout,
    UnprocessableEntityError,
)

from frontdesk.errors import (
    ConfigurationError,
    Conflict,
    FrontdeskError,
    Invalid,
    NotFound,
    PendingApproval,
    Unavailable,
)
from frontdesk.identity import keys, outbound
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.model import Caller
from frontdesk.identity.store import KeyStore
from frontdesk.llm.events import FailureKind
from frontdesk.text import parse_retry_after

# The exceptions of the client: its own, and those of the transport and of broken JSON in a stream.
LETTA_ERRORS = (APIError, httpx.HTTPError, json.JSONDecodeError, UnicodeDecodeError)
SHOWN_CHARACTERS = 300
REFUSAL_STATUSES = range(400, 500)
TOO_LONG = (
    "Letta: the conversation no longer fits into the model; have it summed up, begin a new one, or take a model with a "
    "larger context"
)

MODEL_FAILURES: Mapping[str, FailureKind] = {
    "llm_authentication": FailureKind.UNAUTHENTICATED,
    "llm_rate_limit": FailureKind.RATE_LIMITED,
    "llm_timeout": FailureKind.UNAVAILABLE,
    "llm_error": FailureKind.UNAVAILABLE,
    "llm_empty_response": FailureKind.UNAVAILABLE,
    "stream_incomplete": FailureKind.UNAVAILABLE,
    "context_window_overflow_in_system_prompt": FailureKind.TOO_LONG,
}
# Letta's text for an id that does not have the form of its ids.
MALFORMED_ID = ("'path'", "ID format")
WAITS_FOR_APPROVAL = "waiting for approval"
# Letta's text where it does not have the model that a turn names.
NO_MODEL = re.compile(r"Handle (\S+) not found")
# The name of the error for a conversation that is too long for its model, in Letta and most providers.
OVERFLOW = re.compile(r"context.?window|context_length|maximum context|prompt is too long", re.IGNORECASE)
# Letta reports this as an internal error of its own.
MODEL_CONNECTION_LOST = "Connection error"


class LettaFailure(Unavailable):
    """Letta, or the model behind it, failed; `trouble` is the kind of failure in a turn's events."""

    def __init__(
        self, message: str, trouble: FailureKind = FailureKind.UNAVAILABLE, *, retry_after: float | None = None
    ) -> None:
        super().__init__(message, retry_after=retry_after)
        self.trouble = trouble


def translate_error(error: Exception, base_url: str, about: str) -> FrontdeskError:
    """Frontdesk's error for an error of Letta; `about` names the subject of the request, e.g. "agent 'agent-1'"."""
    if isinstance(error, APIStatusError):
        return _model_error(error) or _request_error(error, about) or _server_error(error, base_url)
    return LettaFailure(
        f"The Letta server at {base_url} {_describe_silence(error)}; check that it runs, and LETTA_BASE_URL"
    )


def is_refusal(error: BaseException) -> bool:
    """Whether the server received the request and declined it, so that it had no effect."""
    return isinstance(error, APIStatusError) and error.status_code in REFUSAL_STATUSES


def _describe_silence(error: Exception) -> str:
    match error:
        case APITimeoutError() | httpx.TimeoutException():
            return "does not answer in time"
        case APIConnectionError() | httpx.ConnectError():
            return "does not answer"
        case httpx.HTTPError():
            return "broke off in the middle of an answer"
        case _:
            return "answers what no Letta server would"


def _model_error(error: APIStatusError) -> FrontdeskError | None:
    """The error where the requested model is missing, or the text is too long for it."""
    detail = _detail(error.body)
    if isinstance(error, NotFoundError) and (found := NO_MODEL.search(detail)):
        return LettaFailure(f"The Letta server has no model '{found[1]}'; take one that it has", FailureKind.NOT_FOUND)
    if isinstance(error, BadRequestError) and OVERFLOW.search(detail):
        return LettaFailure(TOO_LONG, FailureKind.TOO_LONG)
    return None


def _request_error(error: APIStatusError, about: str) -> FrontdeskError | None:
    """The error for a mistake in the caller's request."""
    detail = _detail(error.body)
    match error:
        case NotFoundError():
            return NotFound(f"The Letta server has no {about}")
        case UnprocessableEntityError() if any(word in detail for word in MALFORMED_ID):
            return NotFound(f"The Letta server has no {about}")
        case BadRequestError() | UnprocessableEntityError():
            return Invalid(f"The Letta server refuses this for {about}: {detail[:SHOWN_CHARACTERS]}")
        case ConflictError():
            return (
                PendingApproval(())
                if "PENDING_APPROVAL" in detail
                else Conflict(f"{about}: {detail[:SHOWN_CHARACTERS]}")
            )
        case _:
            return None


def _server_error(error: APIStatusError, base_url: str) -> FrontdeskError:
    """The error for a failure of the server, or of the model behind it."""
    wait = parse_retry_after(error.response.headers.get("retry-after"))
    match error:
        case AuthenticationError() | PermissionDeniedError():
            return LettaFailure(
                f"The Letta server at {base_url} refuses the key; check LETTA_API_KEY or LETTA_SERVER_PASSWORD, "
                "and LETTA_BASE_URL",
                FailureKind.UNAUTHENTICATED,
            )
        case RateLimitError():
            text = f"The Letta server at {base_url} asks to slow down"
            return LettaFailure(text, FailureKind.RATE_LIMITED, retry_after=wait)
        case _ if error.status_code < httpx.codes.BAD_REQUEST:
            return _stream_error(error)
        case _:
            text = f"The Letta server at {base_url} fails ({error.status_code}); its log says why"
            return LettaFailure(text, retry_after=wait)


def _stream_error(error: APIStatusError) -> FrontdeskError:
    """The error for an error event in a stream that began normally."""
    said = _fields(error.body)
    message, detail = str(said.get("message") or ""), str(said.get("detail") or "")
    if WAITS_FOR_APPROVAL in message:
        return PendingApproval(())
    text = message if detail in ("", message) else f"{message} ({detail[:SHOWN_CHARACTERS]})"
    trouble = MODEL_FAILURES.get(str(said.get("error_type")), FailureKind.INTERNAL)
    if OVERFLOW.search(f"{message} {detail}"):
        return LettaFailure(TOO_LONG, FailureKind.TOO_LONG)
    if MODEL_CONNECTION_LOST in detail:
        trouble = FailureKind.UNAVAILABLE
    advice = "; check the model provider's key on the Letta server" if trouble is FailureKind.UNAUTHENTICATED else ""
    return LettaFailure(f"Letta: {text or 'the run failed'}{advice}", trouble)


def _detail(body: object) -> str:
    said = _fields(body)
    return str(said.get("detail") or said or "")


def _fields(body: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", body) if isinstance(body, dict) else {}


# Letta's text (0.16.7 and later) where it refuses a server that is not on the public Internet.
NON_PUBLIC_REFUSALS = ("Non-public IP", "non-public IP", "Blocked internal hostname")


@contextmanager
def explain_unreachable(url: str) -> Generator[None]:
    """Explains Letta's refusal to use this address of ours."""
    try:
        yield
    except (Invalid, NotFound) as error:
        if any(word in f"{error} {error.__cause__ or ''}" for word in NON_PUBLIC_REFUSALS):
            raise ConfigurationError(
                f"This Letta server (0.16.7 or later) refuses MCP servers that are not on the public Internet, and "
                f"{url} is not. Give Frontdesk a public address (FRONTDESK_PUBLIC_URL, e.g. through a tunnel) and "
                "connect again, or see docs/guide/letta.md for the other ways"
            ) from error
        if isinstance(error, Invalid):
            raise
        raise ConfigurationError(
            f"The Letta server could not read the tools at {url}. Frontdesk must run there, on the same data as this "
            "command, and the machine that Letta runs on must reach it (--url gives another address)"
        ) from error


KEY_SECRET = "FRONTDESK_KEY"  # noqa: S105 - the name of a secret, not one
# The agent id of the key with which Letta lists our tools: no real agent, and the key may only list tools.
REGISTRATION_AGENT = "letta-registration"
AUTHORIZATION = "Authorization"
HEADER_TEMPLATE = re.compile(r"Bearer \{\{ FRONTDESK_KEY \| (?P<key>\S+) \}\}")


def key_headers(key: str) -> dict[str, str]:
    """Headers in which Letta fills in the agent's own secret; `key` is used where Letta asks for no agent."""
    return {AUTHORIZATION: f"Bearer {{{{ {KEY_SECRET} | {key} }}}}"}


def key_from_headers(headers: Mapping[str, str] | None) -> str | None:
    """The fallback key in these headers, if they are ours."""
    found = HEADER_TEMPLATE.fullmatch((headers or {}).get(AUTHORIZATION, ""))
    return found["key"] if found else None


async def find_working_key(store: KeyStore, text: str | None, agent_id: str, now: datetime) -> ApiKey | None:
    """The key in a text, if it is a valid one of ours for this agent."""
    parsed = keys.parse_key(text or "")
    key = await store.get(parsed[0]) if parsed else None
    if parsed is None or key is None or key.agent_id != agent_id or not key.matches(parsed[1]):
        return None
    return key if key.works_at(now) else None


ANSWER_SECONDS = 10
# Letta sends a ping every 20 s while it works.
SILENCE_SECONDS = 120
RETRIES = 1
MAX_OWNERS = 10_000
# Letta returns an empty list for a deleted conversation, so the conversation itself is read again at intervals.
OWNER_SECONDS = 60


@dataclass(frozen=True, slots=True)
class LettaServer:
    """One Letta server; `client` is for short requests, `streaming` for turns, and never retries."""

    base_url: str
    client: AsyncLetta
    streaming: AsyncLetta
    _owners: dict[str, tuple[str, float]] = field(default_factory=dict[str, tuple[str, float]])

    def on_behalf_of(self, caller: Caller) -> "LettaServer":
        """The same server, with headers that name the caller in each request."""
        said = outbound.caller_headers(caller)
        client, streaming = (one.with_options(default_headers=said) for one in (self.client, self.streaming))
        return replace(self, client=client, streaming=streaming)

    async def owner(self, conversation_id: str) -> str:
        """The agent that a conversation belongs to; the answer may be up to a minute old."""
        agent_id, until = self._owners.get(conversation_id, ("", 0.0))
        if until <= anyio.current_time():
            agent_id = (await self.client.conversations.retrieve(conversation_id)).agent_id
            self.remember(conversation_id, agent_id)
        return agent_id

    def remember(self, conversation_id: str, agent_id: str) -> None:
        self._owners.pop(conversation_id, None)
        self._owners[conversation_id] = agent_id, anyio.current_time() + OWNER_SECONDS
        if len(self._owners) > MAX_OWNERS:
            del self._owners[next(iter(self._owners))]

    def drop(self, conversation_id: str) -> None:
        """Forget a deleted conversation."""
        self._owners.pop(conversation_id, None)

    def forget(self, agent_id: str) -> None:
        """Forget the conversations of a deleted agent."""
        for conversation_id in [one for one, (owner, _) in self._owners.items() if owner == agent_id]:
            del self._owners[conversation_id]

    @contextmanager
    def translating_errors(self, about: str) -> Generator[None]:
        """Translates the errors of Letta's client into ours."""
        try:
            yield
        except LETTA_ERRORS as error:
            raise translate_error(error, self.base_url, about) from error

    async def close(self) -> None:
        await self.client.close()


def open_server(base_url: str, token: str | None) -> LettaServer:
    # The client requires a key; a server without a password ignores it.
    client = AsyncLetta(
        base_url=base_url,
        api_key=token or "none",
        timeout=ANSWER_SECONDS,
        max_retries=RETRIES,
        default_headers=outbound.caller_headers(),
    )
    streaming = client.with_options(max_retries=0, timeout=Timeout(ANSWER_SECONDS, read=SILENCE_SECONDS))
    return LettaServer(base_url, client, streaming)
