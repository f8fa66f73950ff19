"""How endings and errors are told to an editor."""

import pytest

from frontdesk import errors
from frontdesk.agents.letta.server import LettaFailure
from frontdesk.errors import FrontdeskError
from frontdesk.interfaces.acp.errors import rpc_error, stop_reason, turn_error
from frontdesk.llm.events import Failed, FailureKind, StopReason


@pytest.mark.parametrize(
    ("stop", "told"),
    [
        (StopReason.END_TURN, "end_turn"),
        (StopReason.MAX_TOKENS, "max_tokens"),
        (StopReason.MAX_STEPS, "max_turn_requests"),
        (StopReason.REFUSAL, "refusal"),
        (StopReason.CANCELLED, "cancelled"),
        (StopReason.INTERRUPTED, "cancelled"),
    ],
)
def test_an_ending_is_told_in_the_protocols_word(stop: StopReason, told: str) -> None:
    assert stop_reason(stop) == told


def test_every_ending_and_every_trouble_has_a_word() -> None:
    assert all(stop_reason(stop) for stop in StopReason)
    assert all(turn_error(Failed(trouble, "x")).code for trouble in FailureKind)


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        (FailureKind.UNAUTHENTICATED, -32000),
        (FailureKind.NOT_FOUND, -32002),
        (FailureKind.RATE_LIMITED, -32003),
        (FailureKind.TOO_LONG, -32004),
        (FailureKind.UNAVAILABLE, -32005),
        (FailureKind.BUSY, -32005),
        (FailureKind.INVALID, -32602),
        (FailureKind.INTERNAL, -32603),
    ],
)
def test_a_failed_turn_is_an_error_of_its_kind(trouble: FailureKind, code: int) -> None:
    found = turn_error(Failed(trouble, "It broke;\n try again"))
    assert (found.code, found.message, found.data) == (code, "It broke; try again", None)


def test_a_model_that_asks_for_patience_is_quoted() -> None:
    assert turn_error(Failed(FailureKind.RATE_LIMITED, "Wait", 7.5)).data == {"retryAfter": 7.5}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.Unauthenticated("x"), -32000),
        (errors.Denied("x"), -32600),
        (errors.MissingScope("x"), -32600),
        (errors.NotFound("x"), -32002),
        (errors.Invalid("x"), -32602),
        (errors.Conflict("x"), -32600),
        (errors.PendingApproval(["x"]), -32600),
        (errors.RateLimited("x", 2), -32003),
        (errors.Unavailable("x"), -32005),
        (errors.UnknownAgent("x"), -32602),
        (errors.ConfigurationError("x"), -32603),
    ],
)
def test_an_error_of_ours_has_a_code(error: FrontdeskError, code: int) -> None:
    assert rpc_error(error).code == code


def test_what_a_letta_server_refuses_is_told_as_what_it_is() -> None:
    wrong_key = LettaFailure("The Letta server refuses the key", FailureKind.UNAUTHENTICATED)
    assert rpc_error(wrong_key).code == -32000
    assert rpc_error(LettaFailure("The Letta server is away")).code == -32005


def test_an_error_says_no_more_than_is_public_and_says_it_on_one_line() -> None:
    error = errors.Unavailable("postgres://secret@host is down", public="The database\nis down", retry_after=3)
    found = rpc_error(error)
    assert (found.message, found.data) == ("The database is down", {"retryAfter": 3})


def test_an_endless_message_is_cut() -> None:
    assert len(turn_error(Failed(FailureKind.INTERNAL, "x" * 10_000)).message) <= 500
    assert turn_error(Failed(FailureKind.INTERNAL, "")).message
