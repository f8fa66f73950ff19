"""How endings and errors are told to an editor."""

import pytest

from frontdesk import errors
from frontdesk.agents.letta.errors import LettaTrouble
from frontdesk.errors import FrontdeskError
from frontdesk.loop.events import Failed, StopReason, Trouble
from frontdesk.surfaces.acp.convert.stops import failure, refusal, stop_reason


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
    assert all(failure(Failed(trouble, "x")).code for trouble in Trouble)


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        (Trouble.UNAUTHENTICATED, -32000),
        (Trouble.NOT_FOUND, -32002),
        (Trouble.RATE_LIMITED, -32003),
        (Trouble.TOO_LONG, -32004),
        (Trouble.UNAVAILABLE, -32005),
        (Trouble.BUSY, -32005),
        (Trouble.INVALID, -32602),
        (Trouble.INTERNAL, -32603),
    ],
)
def test_a_failed_turn_is_an_error_of_its_kind(trouble: Trouble, code: int) -> None:
    found = failure(Failed(trouble, "It broke;\n try again"))
    assert (found.code, found.message, found.data) == (code, "It broke; try again", None)


def test_a_model_that_asks_for_patience_is_quoted() -> None:
    assert failure(Failed(Trouble.RATE_LIMITED, "Wait", 7.5)).data == {"retryAfter": 7.5}


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
    assert refusal(error).code == code


def test_what_a_letta_server_refuses_is_told_as_what_it_is() -> None:
    wrong_key = LettaTrouble("The Letta server refuses the key", Trouble.UNAUTHENTICATED)
    assert refusal(wrong_key).code == -32000
    assert refusal(LettaTrouble("The Letta server is away")).code == -32005


def test_an_error_says_no_more_than_is_public_and_says_it_on_one_line() -> None:
    error = errors.Unavailable("postgres://secret@host is down", public="The database\nis down", retry_after=3)
    found = refusal(error)
    assert (found.message, found.data) == ("The database is down", {"retryAfter": 3})


def test_an_endless_message_is_cut() -> None:
    assert len(failure(Failed(Trouble.INTERNAL, "x" * 10_000)).message) <= 500
    assert failure(Failed(Trouble.INTERNAL, "")).message
