"""Letta's errors in our words: each says what happened and what to do, and none repeats a key or a message."""

import json
import re
from collections.abc import Mapping
from typing import cast

import httpx
from letta_client import (
    APIConnectionError,
    APIError,
    APIStatusError,
    APITimeoutError,
    AuthenticationError,
    BadRequestError,
    ConflictError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    UnprocessableEntityError,
)

from frontdesk.errors import Conflict, FrontdeskError, Invalid, NotFound, PendingApproval, Unavailable
from frontdesk.loop.events import Trouble
from frontdesk.loop.waits import seconds_asked

# What the client raises: its own errors, and those of the transport and of broken JSON while a stream is read.
LETTA_ERRORS = (APIError, httpx.HTTPError, json.JSONDecodeError, UnicodeDecodeError)
SHOWN = 300
REFUSALS = range(400, 500)
TOO_LONG = (
    "Letta: the conversation no longer fits into the model; have it summed up, begin a new one, or take a model with a "
    "larger context"
)

MODEL_TROUBLES: Mapping[str, Trouble] = {
    "llm_authentication": Trouble.UNAUTHENTICATED,
    "llm_rate_limit": Trouble.RATE_LIMITED,
    "llm_timeout": Trouble.UNAVAILABLE,
    "llm_error": Trouble.UNAVAILABLE,
    "llm_empty_response": Trouble.UNAVAILABLE,
    "stream_incomplete": Trouble.UNAVAILABLE,
    "context_window_overflow_in_system_prompt": Trouble.TOO_LONG,
}
# What it says of an id that does not even look like one of its own.
MALFORMED_ID = ("'path'", "ID format")
WAITS_FOR_APPROVAL = "waiting for approval"
# What it says where it has no model of the name that a turn asks for.
NO_MODEL = re.compile(r"Handle (\S+) not found")
# What the error of a conversation that is too long for its model is called, there and by most providers.
OVERFLOW = re.compile(r"context.?window|context_length|maximum context|prompt is too long", re.IGNORECASE)
# Letta calls this an internal error of its own.
MODEL_BROKE_OFF = "Connection error"


class LettaTrouble(Unavailable):
    """Letta, or the model behind it, does not do its part; `trouble` is how a turn tells it."""

    def __init__(
        self, message: str, trouble: Trouble = Trouble.UNAVAILABLE, *, retry_after: float | None = None
    ) -> None:
        super().__init__(message, retry_after=retry_after)
        self.trouble = trouble


def told(error: Exception, base_url: str, about: str) -> FrontdeskError:
    """The error in our words; `about` names what the request was about, e.g. "agent 'agent-1'"."""
    if isinstance(error, APIStatusError):
        return _about_the_model(error) or _refused(error, about) or _failed(error, base_url)
    return LettaTrouble(f"The Letta server at {base_url} {_silence(error)}; check that it runs, and LETTA_BASE_URL")


def refused(error: BaseException) -> bool:
    """Whether the server took a request in and declined it, so that nothing came of it."""
    return isinstance(error, APIStatusError) and error.status_code in REFUSALS


def _silence(error: Exception) -> str:
    match error:
        case APITimeoutError() | httpx.TimeoutException():
            return "does not answer in time"
        case APIConnectionError() | httpx.ConnectError():
            return "does not answer"
        case httpx.HTTPError():
            return "broke off in the middle of an answer"
        case _:
            return "answers what no Letta server would"


def _about_the_model(error: APIStatusError) -> FrontdeskError | None:
    """What the model that was asked for does not allow."""
    detail = _detail(error.body)
    if isinstance(error, NotFoundError) and (found := NO_MODEL.search(detail)):
        return LettaTrouble(f"The Letta server has no model '{found[1]}'; take one that it has", Trouble.NOT_FOUND)
    if isinstance(error, BadRequestError) and OVERFLOW.search(detail):
        return LettaTrouble(TOO_LONG, Trouble.TOO_LONG)
    return None


def _refused(error: APIStatusError, about: str) -> FrontdeskError | None:
    """What the caller asked for in vain."""
    detail = _detail(error.body)
    match error:
        case NotFoundError():
            return NotFound(f"The Letta server has no {about}")
        case UnprocessableEntityError() if any(word in detail for word in MALFORMED_ID):
            return NotFound(f"The Letta server has no {about}")
        case BadRequestError() | UnprocessableEntityError():
            return Invalid(f"The Letta server refuses this for {about}: {detail[:SHOWN]}")
        case ConflictError():
            return PendingApproval(()) if "PENDING_APPROVAL" in detail else Conflict(f"{about}: {detail[:SHOWN]}")
        case _:
            return None


def _failed(error: APIStatusError, base_url: str) -> FrontdeskError:
    """What the server, or the model behind it, did not do."""
    wait = seconds_asked(error.response.headers.get("retry-after"))
    match error:
        case AuthenticationError() | PermissionDeniedError():
            return LettaTrouble(
                f"The Letta server at {base_url} refuses the key; check LETTA_API_KEY or LETTA_SERVER_PASSWORD, "
                "and LETTA_BASE_URL",
                Trouble.UNAUTHENTICATED,
            )
        case RateLimitError():
            text = f"The Letta server at {base_url} asks to slow down"
            return LettaTrouble(text, Trouble.RATE_LIMITED, retry_after=wait)
        case _ if error.status_code < httpx.codes.BAD_REQUEST:
            return _told_in_stream(error)
        case _:
            text = f"The Letta server at {base_url} fails ({error.status_code}); its log says why"
            return LettaTrouble(text, retry_after=wait)


def _told_in_stream(error: APIStatusError) -> FrontdeskError:
    """An error that came as an event of a stream that had begun well."""
    said = _fields(error.body)
    message, detail = str(said.get("message") or ""), str(said.get("detail") or "")
    if WAITS_FOR_APPROVAL in message:
        return PendingApproval(())
    text = message if detail in ("", message) else f"{message} ({detail[:SHOWN]})"
    trouble = MODEL_TROUBLES.get(str(said.get("error_type")), Trouble.INTERNAL)
    if OVERFLOW.search(f"{message} {detail}"):
        return LettaTrouble(TOO_LONG, Trouble.TOO_LONG)
    if MODEL_BROKE_OFF in detail:
        trouble = Trouble.UNAVAILABLE
    advice = "; check the model provider's key on the Letta server" if trouble is Trouble.UNAUTHENTICATED else ""
    return LettaTrouble(f"Letta: {text or 'the run failed'}{advice}", trouble)


def _detail(body: object) -> str:
    said = _fields(body)
    return str(said.get("detail") or said or "")


def _fields(body: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", body) if isinstance(body, dict) else {}
