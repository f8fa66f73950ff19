"""Answers on their way to webhooks: what is signed, how long one is tried, and where none may go."""

import hashlib
import hmac
import ipaddress
import json

import pytest
from pydantic import SecretStr

from frontdesk.errors import Invalid
from frontdesk.schedules.webhook_store import WebhookNotSent, WebhookRetryPolicy, build_webhook_call
from frontdesk.schedules.webhooks import check_webhook, is_public_address, resolve_addresses, sign_body
from frontdesk.text import parse_retry_after
from tests.unit.test_schedule_prompt import DUE, RUN

pytestmark = pytest.mark.anyio
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
