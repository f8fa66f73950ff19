"""Tests the text of a due prompt, the delivery of its answer to a webhook, and the level of its log events."""

import hashlib
import hmac
import ipaddress
import json
from dataclasses import replace

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

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
from frontdesk.schedules.delivery_rules import SettledRun, settle_attempt
from frontdesk.schedules.model import SECOND, DeliveryFailed, Occurrence, RunStatus, delivery_id
from frontdesk.schedules.webhook_store import build_webhook_call
from frontdesk.schedules.webhooks import (
    WebhookNotSent,
    WebhookRetryPolicy,
    check_webhook,
    is_public_address,
    resolve_addresses,
    sign_body,
)
from frontdesk.schedules.worker import log_ended
from frontdesk.text import parse_retry_after

# The message of a scheduled prompt to its agent, and how much of the answer is kept


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


# Answers to webhooks: the signature, the retries, and forbidden addresses


HOOK = "https://hooks.example.com/in/secret-path"


def test_a_receiver_can_check_the_signature_with_the_secret_alone() -> None:
    body = '{"answer": "ü"}'.encode()
    said = dict(part.split("=", 1) for part in sign_body(SecretStr("s3cret"), body, 1_794_820_800).split(","))
    assert said["t"] == "1794820800"
    assert said["v1"] == hmac.new(b"s3cret", b"1794820800." + body, hashlib.sha256).hexdigest()


def test_what_goes_on_names_the_delivery_and_holds_the_answer() -> None:
    forward = build_webhook_call(RUN, HOOK, "It is noon: ü", DUE + 2_000_000)
    assert (forward.occurrence_id, forward.url) == (RUN.id, HOOK)
    assert json.loads(forward.body) == {
        "delivery_id": "run-42-1794816000000",
        "schedule_id": 42,
        "agent_id": "agent-1",
        "number": 3,
        "intended": "2026-11-16T08:00:00Z",
        "delivered_at": "2026-11-16T08:00:02Z",
        "answer": "It is noon: ü",
    }


@pytest.mark.parametrize(("attempt", "wait"), [(1, 5.0), (2, 10.0), (5, 80.0), (1000, 3600.0)])
def test_each_attempt_waits_twice_as_long_as_the_one_before_less_by_chance_and_never_over_an_hour(
    attempt: int, wait: float
) -> None:
    assert [WebhookRetryPolicy().wait_s(attempt, None, chance) for chance in (0.0, 0.5, 1.0)] == [
        wait,
        0.75 * wait,
        0.5 * wait,
    ]


def test_a_receiver_may_ask_for_a_longer_wait_and_not_for_a_shorter_one() -> None:
    assert WebhookRetryPolicy().wait_s(1, 100.0, 0.5) == 100.0
    assert WebhookRetryPolicy().wait_s(5, 1.0, 0.5) == 60.0
    assert WebhookRetryPolicy().wait_s(1, 1e9, 0.5) == 3600.0


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("17", 17.0), (" 3 ", 3.0), ("Mon, 16 Nov 2020 08:00:00 GMT", 0.0), ("soon", None), ("-5", None), (None, None)],
)
def test_a_wait_is_read_as_seconds_or_as_a_date(said: str | None, seconds: float | None) -> None:
    assert parse_retry_after(said) == seconds


def test_a_wait_until_a_later_date_is_counted_from_now() -> None:
    assert (parse_retry_after("Mon, 16 Nov 2226 08:00:00 GMT") or 0) > 1e9


@pytest.mark.parametrize(
    "url", [HOOK, "http://203.0.114.9:8080/x?token=1", "https://[2600::1]/", "https://Example.COM"]
)
def test_a_webhook_may_lead_anywhere_in_public(url: str) -> None:
    check_webhook(url, signed=True, private=False)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://example.com", "http:// or https://"),
        ("example.com/hook", "http:// or https://"),
        ("https://", "http:// or https://"),
        ("https://example.com:0/", "http:// or https://"),
        ("https://example.com:99999/", "http:// or https://"),
        ("https://[::1/", "http:// or https://"),
        ("https://example.com/a b", "plain characters"),
        (f"https://example.com/{'a' * 2000}", "plain characters"),
        ("https://example.com/ü", "plain characters"),
        ("https://ann:pw@example.com/", "login"),
        ("http://127.0.0.1/", "private network"),
        ("http://localhost:3020/", "private network"),
        ("http://a.localhost./", "private network"),
        ("http://10.1.2.3/", "private network"),
        ("http://[::1]/", "private network"),
        ("http://[::ffff:192.168.0.1]/", "private network"),
    ],
)
def test_a_webhook_that_cannot_be_is_refused_with_what_can(url: str, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        check_webhook(url, signed=True, private=False)


def test_private_addresses_are_taken_where_the_setting_says_so() -> None:
    check_webhook("http://127.0.0.1:8080/hook", signed=True, private=True)
    with pytest.raises(Invalid, match="login"):
        check_webhook("http://ann:pw@127.0.0.1/", signed=True, private=True)


def test_without_a_secret_to_sign_with_no_webhook_is_taken() -> None:
    with pytest.raises(Invalid, match="FRONTDESK_WEBHOOK_SECRET"):
        check_webhook(HOOK, signed=False, private=True)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "192.168.1.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "fec0::1",
        "ff02::1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2002:a00:1::",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    ],
)
def test_an_address_that_is_not_public_is_known_in_every_dress(address: str) -> None:
    assert not is_public_address(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "2600::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::"])
def test_a_public_address_is_known_too(address: str) -> None:
    assert is_public_address(ipaddress.ip_address(address))


@pytest.mark.parametrize("host", ["localhost", "127.1", "2130706433", "0x7f000001", "::1", "0"])
async def test_what_leads_to_this_machine_is_not_sent_to_however_it_is_written(host: str) -> None:
    with pytest.raises(WebhookNotSent, match="FRONTDESK_WEBHOOK_PRIVATE") as caught:
        await resolve_addresses(host, 80, private=False)
    assert caught.value.permanent


async def test_where_private_networks_are_allowed_the_addresses_behind_a_name_are_told() -> None:
    assert "127.0.0.1" in await resolve_addresses("localhost", 80, private=True)


async def test_a_name_that_leads_nowhere_is_tried_again_later() -> None:
    with pytest.raises(WebhookNotSent, match="cannot be resolved") as caught:
        await resolve_addresses("a-name-of-nobody.invalid", 80, private=False)
    assert not caught.value.permanent


# Log levels for prompts that ended


def ended(standing: RunStatus, times: int) -> list[SettledRun]:
    occurrence = Occurrence("run-1-1", 1, "ada", None, "Say hello", 0, 1, 1, 1)
    return [SettledRun(occurrence, standing, 1000, error="no answer")] * times


@pytest.mark.parametrize("times", [1, 20])
@pytest.mark.parametrize(
    ("standing", "level"),
    [(RunStatus.DELIVERED, "info"), (RunStatus.WAITING, "warning"), (RunStatus.DEAD, "error")],
)
def test_many_at_once_are_told_as_loudly_as_one(times: int, standing: RunStatus, level: str) -> None:
    with capture_logs() as lines:
        log_ended(ended(standing, times))
    assert [line["log_level"] for line in lines] == [level]


def test_the_worst_of_many_decides_and_each_kind_is_counted() -> None:
    with capture_logs() as lines:
        log_ended([*ended(RunStatus.DELIVERED, 8), *ended(RunStatus.WAITING, 3), *ended(RunStatus.DEAD, 1)])
    told = {"event": "prompts_ended", "delivered": 8, "failed": 3, "dead": 1, "log_level": "error"}
    assert lines == [told]
