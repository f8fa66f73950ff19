"""What an agent is told when a scheduled prompt reaches it, and how much of its answer is kept."""

from dataclasses import replace

import pytest

from frontdesk.errors import (
    Busy,
    Denied,
    FrontdeskError,
    Invalid,
    NotFound,
    PendingApproval,
    RateLimited,
    TakenOver,
    Unavailable,
)
from frontdesk.identity.model import AgentIdSource
from frontdesk.llm.events import Done, Event, Failed, FailureKind, Started, StopReason, TextChunk, ToolCall
from frontdesk.schedules.delivery import ANSWER_BYTES, TRUNCATED, DeliveryTurn, compose_prompt, prompt_of
from frontdesk.schedules.delivery_rules import settle_attempt
from frontdesk.schedules.model import SECOND, DeliveryFailed, Occurrence, delivery_id

DUE = 1_794_816_000_000_000
LATE = DUE + 90_500_000
RUN = Occurrence(
    id=delivery_id(42, DUE),
    schedule_id=42,
    agent_id="agent-1",
    user_id="ann",
    prompt="Write the report.\n\nAll of it.",
    intended_us=DUE,
    number=3,
    attempt=1,
    fence=1,
)
STARTED = Started("turn-1", "conv-1")


def test_a_run_is_told_that_it_is_one_when_it_was_due_and_under_which_id() -> None:
    head, _, prompt = compose_prompt(RUN, LATE).partition("\n\n")
    assert prompt == "Write the report.\n\nAll of it."
    assert head == (
        "[This is a scheduled run of schedule 42, number 3, and not a request to schedule anything again. "
        "It was due at 2026-11-16T08:00:00Z and comes at 2026-11-16T08:01:30Z. "
        "Attempt 1, delivery run-42-1794816000000.]"
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"recurring": True}, "The schedule repeats by itself."),
        ({"recurring": True, "last": True}, "It is the last one."),
        ({"manual": True}, "It was started by hand at 2026-11-16T08:00:00Z."),
        ({"attempt": 4}, "Attempt 4, delivery run-42-1794816000000."),
        ({"in_doubt": True}, "what you did for this delivery id, do not do twice"),
    ],
)
def test_a_run_is_told_what_is_special_about_it(change: dict[str, object], sentence: str) -> None:
    assert sentence in compose_prompt(replace(RUN, **change), LATE)
    assert sentence not in compose_prompt(RUN, LATE)


def test_a_run_is_in_the_name_of_its_agent_and_its_person_and_carries_its_id() -> None:
    prompt = prompt_of(replace(RUN, conversation_id="conv-7"), LATE)
    caller = prompt.caller
    assert (caller.agent_id, caller.user_id, caller.request_id) == ("agent-1", "ann", RUN.id)
    assert caller.source is AgentIdSource.SCHEDULE
    assert (prompt.agent_id, prompt.conversation_id, prompt.otid) == ("agent-1", "conv-7", RUN.id)
    assert prompt.patient
    assert not prompt.again
    assert prompt_of(replace(RUN, in_doubt=True), LATE).again


def outcome(*events: Event, occurrence: Occurrence = RUN) -> str | None:
    heard = DeliveryTurn(occurrence)
    for event in events:
        heard.add_event(event)
    return heard.answer()


def test_what_the_agent_said_is_kept_with_its_steps_apart() -> None:
    tool = ToolCall("call-1", "look", {})
    words = (TextChunk("Let me "), TextChunk("see."), tool, tool, TextChunk("It is "), TextChunk("noon."))
    assert outcome(STARTED, *words, Done(StopReason.END_TURN)) == "Let me see.\n\nIt is noon."


def test_an_agent_that_said_nothing_has_no_answer() -> None:
    assert outcome(STARTED, TextChunk(" \n"), Done(StopReason.END_TURN)) is None


@pytest.mark.parametrize("letter", ["x", "ü", "😀"])
def test_of_a_long_answer_the_beginning_is_kept(letter: str) -> None:
    answer = outcome(STARTED, *[TextChunk(letter * 1000)] * 200, Done(StopReason.END_TURN))
    assert answer is not None
    assert answer.endswith(TRUNCATED)
    assert set(answer.removesuffix(TRUNCATED)) == {letter}
    assert ANSWER_BYTES - 4 <= len(answer.encode()) <= ANSWER_BYTES


@pytest.mark.parametrize("stop", [StopReason.MAX_STEPS, StopReason.MAX_TOKENS, StopReason.REFUSAL])
def test_a_turn_that_ended_short_was_taken_all_the_same(stop: StopReason) -> None:
    assert outcome(STARTED, TextChunk("so far"), Done(stop)) == "so far"


def test_a_turn_that_waits_for_approval_was_taken() -> None:
    assert outcome(STARTED, Done(StopReason.REQUIRES_APPROVAL)) is None


def why(*events: Event, occurrence: Occurrence = RUN) -> DeliveryFailed:
    with pytest.raises(DeliveryFailed) as caught:
        outcome(*events, occurrence=occurrence)
    return caught.value


@pytest.mark.parametrize(
    ("trouble", "permanent", "counted"),
    [
        (FailureKind.UNAVAILABLE, False, True),
        (FailureKind.UNAUTHENTICATED, False, True),
        (FailureKind.INTERNAL, False, True),
        (FailureKind.RATE_LIMITED, False, True),
        (FailureKind.BUSY, False, False),
        (FailureKind.INVALID, True, True),
    ],
)
def test_what_went_wrong_says_whether_to_try_again_and_whether_it_counts(
    trouble: FailureKind, permanent: bool, counted: bool
) -> None:
    error = why(STARTED, Failed(trouble, "No."), Done(StopReason.ERROR))
    assert (str(error), error.permanent, error.counted) == ("No.", permanent, counted)
    assert error.in_doubt


def test_the_wait_that_the_other_side_asked_for_is_kept_within_an_hour() -> None:
    failed = Failed(FailureKind.RATE_LIMITED, "Slow down.", 17.0)
    assert why(STARTED, failed, Done(StopReason.ERROR)).retry_after == 17.0
    endless = why(STARTED, replace(failed, retry_after=1e9), Done(StopReason.ERROR))
    assert settle_attempt(RUN, endless, DUE, 0, 0.5).wait_us == 3600.5 * SECOND


def test_a_run_that_somebody_cancelled_is_not_begun_again() -> None:
    assert why(STARTED, TextChunk("I"), Done(StopReason.CANCELLED)).permanent


@pytest.mark.parametrize("ends", [(Done(StopReason.INTERRUPTED),), ()])
def test_a_run_that_was_cut_off_is_tried_again_and_counts_for_nothing(ends: tuple[Event, ...]) -> None:
    error = why(STARTED, TextChunk("I"), *ends)
    assert (error.permanent, error.counted, error.in_doubt) == (False, False, True)
    assert error.retry_after is not None


@pytest.mark.parametrize(
    ("error", "permanent", "counted", "wait"),
    [
        (NotFound("There is no agent."), True, True, None),
        (Invalid("Not so."), True, True, None),
        (Denied("Not you."), True, True, None),
        (PendingApproval(["call-1"]), False, False, 60.0),
        (Busy("Another turn."), False, False, 2.0),
        (TakenOver(), False, False, 2.0),
        (Unavailable("Away."), False, True, None),
        (Unavailable("Away.", retry_after=9.0), False, True, 9.0),
        (RateLimited("agent-1", 3.0), False, True, 3.0),
    ],
)
def test_what_a_host_refuses_says_whether_to_try_again_and_whether_it_counts(
    error: FrontdeskError, permanent: bool, counted: bool, wait: float | None
) -> None:
    told = DeliveryTurn(RUN).failure_of(error)
    assert (told.permanent, told.counted, told.retry_after) == (permanent, counted, wait)
    assert not told.in_doubt


def test_what_a_stranger_may_not_know_of_a_failure_is_not_kept_with_it() -> None:
    told = DeliveryTurn(RUN).failure_of(Unavailable("The database at 10.1.2.3 is away", public="The database is away"))
    assert str(told) == "The database is away"


def test_a_doubt_stays_until_a_turn_has_looked_into_it() -> None:
    assert DeliveryTurn(replace(RUN, in_doubt=True)).failure_of(Unavailable("Away.")).in_doubt
