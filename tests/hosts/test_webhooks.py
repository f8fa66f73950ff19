"""Tests webhooks for agents' answers: signed, retried, given up in the end, never sent to internal addresses."""

import hashlib
import hmac
import socket
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pydantic import SecretStr
from sqlalchemy import select
from structlog.testing import capture_logs
from typing_extensions import override

from frontdesk.agents.host import NewAgent
from frontdesk.app import open_app, running
from frontdesk.db.engine import Database
from frontdesk.db.schema import forwards
from frontdesk.errors import Unavailable, Unstorable
from frontdesk.schedules.model import now_us
from frontdesk.schedules.requests import NewSchedule
from frontdesk.schedules.webhook_store import (
    WEBHOOK_DEAD,
    WEBHOOK_SENT,
    WEBHOOK_WAITING,
    NewWebhookCall,
    WebhookCall,
    WebhookStore,
    add_webhook_calls,
    build_webhook_call,
)
from frontdesk.schedules.webhooks import WebhookForwarder, WebhookRetryPolicy
from frontdesk.settings import Settings
from tests.hosts.lab import script
from tests.hosts.test_schedule_delivery import run_of
from tests.requirements import shows
from tests.support.scheduling import OPERATOR
from tests.support.waiting import until
from tests.support.webhooks import Received, Webhooks, open_webhooks

SECRET = SecretStr("whsec-do-not-tell")
QUICK = WebhookRetryPolicy(attempts=4, first_seconds=0.01, longest_seconds=2.0, lease_seconds=60.0, send_seconds=20.0)
NAME = "hooks.frontdesk.example"


@pytest.fixture(scope="module")
def webhooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhooks]:
    with open_webhooks(tmp_path_factory.mktemp("webhooks") / "received.jsonl") as running:
        yield running


async def put(database: Database, url: str, *, schedule_id: int = 42) -> NewWebhookCall:
    """An answer for a webhook, as a settled delivery leaves it."""
    run = run_of("agent-1", "Report.", schedule_id=schedule_id)
    forward = build_webhook_call(run, url, "All is well: ü", now_us())
    async with database.transaction() as connection:
        await connection.run_sync(add_webhook_calls, [forward], now_us())
    return forward


async def states(database: Database) -> Sequence[tuple[str, int, str | None]]:
    async with database.read_transaction() as connection:
        found = await connection.execute(
            select(forwards.c.state, forwards.c.attempt, forwards.c.error).order_by(forwards.c.id)
        )
        return [(row.state, row.attempt, row.error) for row in found.all()]


@asynccontextmanager
async def forwarding(
    database: Database, *, secret: SecretStr | None = SECRET, private: bool = True, pace: WebhookRetryPolicy = QUICK
) -> AsyncGenerator[WebhookForwarder]:
    service = WebhookForwarder(WebhookStore(database), secret, private=private, pace=pace)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(service.run)
        yield service
        tasks.cancel_scope.cancel()


async def settled(database: Database, hanging: int = 0) -> Sequence[tuple[str, int, str | None]]:
    """The outcome of all deliveries, except of this many that hang."""
    with anyio.fail_after(20):
        while True:
            found = await states(database)
            if sum(state == WEBHOOK_WAITING for state, *_ in found) <= hanging:
                return found
            await anyio.sleep(0.01)


def is_genuine(received: Received) -> bool:
    said = dict(part.split("=", 1) for part in received.headers["x-frontdesk-signature"].split(","))
    mac = hmac.new(SECRET.get_secret_value().encode(), f"{said['t']}.{received.body}".encode(), hashlib.sha256)
    return hmac.compare_digest(said["v1"], mac.hexdigest()) and abs(int(said["t"]) - time.time()) < 60


@shows("SCHEDULE-WEBHOOK")
async def test_an_answer_reaches_its_webhook_signed_and_with_its_delivery(
    database: Database, webhooks: Webhooks
) -> None:
    forward = await put(database, f"{webhooks.url}/ok?token=abc")
    async with forwarding(database):
        assert await settled(database) == [(WEBHOOK_SENT, 1, None)]
    received = webhooks.received("/ok?token=abc")[-1]
    assert is_genuine(received)
    assert received.body == forward.body
    assert received.json["answer"] == "All is well: ü"
    assert received.headers["x-frontdesk-delivery"] == forward.occurrence_id == received.json["delivery_id"]
    assert received.headers["content-type"] == "application/json"
    assert received.headers["host"] == webhooks.url.removeprefix("http://")


@shows("SCHEDULE-WEBHOOK")
async def test_what_an_agent_says_to_its_prompt_goes_all_the_way_to_the_webhook(
    settings: Settings, webhooks: Webhooks
) -> None:
    here = f"/ok/{uuid4()}"
    signing = settings.with_values(webhook_secret=SECRET, webhook_private=True)
    async with open_app(signing) as app, running(app):
        agent = await app.host.create(NewAgent("Ada"))
        asked = NewSchedule(script({"text": "it is noon"}), agent.id, time="in 2 hours", webhook=webhooks.url + here)
        added = await app.schedules.add(OPERATOR, asked)
        run = await app.schedules.run_now(OPERATOR, added.schedule.id)
        await until(lambda: len(webhooks.received(here)) == 1, 20)
    [received] = webhooks.received(here)
    assert is_genuine(received)
    assert (received.json["delivery_id"], received.json["schedule_id"]) == (run, added.schedule.id)
    assert (received.json["agent_id"], received.json["answer"]) == (agent.id, "it is noon")


@shows("SCHEDULE-WEBHOOK")
async def test_what_comes_while_nothing_is_under_way_is_sent_when_the_watcher_is_notified(
    database: Database, webhooks: Webhooks
) -> None:
    async with forwarding(database) as service:
        await put(database, f"{webhooks.url}/ok")
        service.wake()
        assert await settled(database) == [(WEBHOOK_SENT, 1, None)]


@shows("SCHEDULE-WEBHOOK")
@pytest.mark.parametrize("path", ["flaky/2", "asks/1"])
async def test_an_answer_that_was_not_taken_is_sent_again(database: Database, webhooks: Webhooks, path: str) -> None:
    here = f"/{path}/{uuid4()}"
    forward = await put(database, webhooks.url + here)
    async with forwarding(database):
        [(state, attempts, error)] = await settled(database)
    assert (state, error) == (WEBHOOK_SENT, None)
    received = webhooks.received(here)
    assert len(received) == attempts > 1
    assert {one.headers["x-frontdesk-delivery"] for one in received} == {forward.occurrence_id}
    assert all(is_genuine(one) for one in received)


@shows("SCHEDULE-WEBHOOK")
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("status/500", "status 500"),
        ("status/404", "status 404"),
        ("moved", "redirects are not followed"),
        ("drop", "broke off"),
    ],
)
async def test_an_answer_that_nobody_takes_is_given_up_after_so_many_attempts(
    database: Database, webhooks: Webhooks, path: str, words: str
) -> None:
    here = f"/{path}/{uuid4()}"
    await put(database, webhooks.url + here)
    async with forwarding(database):
        [(state, attempts, error)] = await settled(database)
    assert (state, attempts) == (WEBHOOK_DEAD, 4)
    assert words in (error or "")
    assert len(webhooks.received(here)) == 4


async def test_a_receiver_that_never_answers_is_not_waited_for(database: Database, webhooks: Webhooks) -> None:
    await put(database, f"{webhooks.url}/hang")
    async with forwarding(database, pace=replace(QUICK, attempts=2, send_seconds=0.2)):
        assert await settled(database) == [(WEBHOOK_DEAD, 2, "127.0.0.1 does not answer within 0.2 s")]


async def test_a_receiver_that_is_gone_for_good_is_believed(database: Database, webhooks: Webhooks) -> None:
    await put(database, f"{webhooks.url}/status/410")
    async with forwarding(database):
        [(state, attempts, _)] = await settled(database)
    assert (state, attempts) == (WEBHOOK_DEAD, 1)


async def test_a_receiver_that_hangs_keeps_nobody_else_waiting(database: Database, webhooks: Webhooks) -> None:
    for number in range(3):
        await put(database, f"{webhooks.url}/hang/{number}")
    await put(database, f"{webhooks.url}/ok")
    async with forwarding(database):
        assert (await settled(database, hanging=3))[-1] == (WEBHOOK_SENT, 1, None)


@shows("SCHEDULE-WEBHOOK")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433"])
async def test_no_answer_goes_to_this_machine_unless_the_setting_allows_it(
    database: Database, webhooks: Webhooks, host: str
) -> None:
    before = len(webhooks.received())
    await put(database, f"http://{host}:{webhooks.port}/ok")
    async with forwarding(database, private=False):
        [(state, attempts, error)] = await settled(database)
    assert (state, attempts) == (WEBHOOK_DEAD, 1)
    assert "FRONTDESK_WEBHOOK_PRIVATE" in (error or "")
    assert len(webhooks.received()) == before


@shows("SCHEDULE-WEBHOOK")
async def test_a_name_is_asked_once_and_the_address_that_was_looked_at_is_the_one_connected_to(
    database: Database, webhooks: Webhooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = leading(monkeypatch, "127.0.0.1", "127.0.0.2")
    await put(database, f"http://{NAME}:{webhooks.port}/ok")
    async with forwarding(database):
        assert await settled(database) == [(WEBHOOK_SENT, 1, None)]
    assert asked == [NAME]
    assert webhooks.received()[-1].headers["host"] == f"{NAME}:{webhooks.port}"


async def test_a_name_that_leads_inside_later_is_not_followed_there(
    database: Database, webhooks: Webhooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first DNS answer is an unused address reserved for documentation; the next is this machine."""
    before = len(webhooks.received())
    leading(monkeypatch, "203.0.113.7", "127.0.0.1")
    hurried = replace(QUICK, send_seconds=0.2)

    def is_public(address: object) -> bool:
        return str(address) == "203.0.113.7"

    monkeypatch.setattr("frontdesk.schedules.webhooks.is_public_address", is_public)
    await put(database, f"http://{NAME}:{webhooks.port}/ok")
    async with forwarding(database, private=False, pace=hurried):
        [(state, attempts, error)] = await settled(database)
    assert (state, attempts) == (WEBHOOK_DEAD, 2)
    assert "FRONTDESK_WEBHOOK_PRIVATE" in (error or "")
    assert len(webhooks.received()) == before


@shows("SCHEDULE-WEBHOOK")
@pytest.mark.parametrize(("certified", "state"), [(NAME, WEBHOOK_SENT), ("another.example", WEBHOOK_DEAD)])
async def test_over_tls_the_certificate_must_be_for_the_name_and_not_for_the_address(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certified: str, state: str
) -> None:
    certificate, key = made_certificate(tmp_path, certified)
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    leading(monkeypatch, "127.0.0.1")
    with open_webhooks(tmp_path / "received.jsonl", certificate, key) as running:
        await put(database, f"https://{NAME}:{running.port}/ok")
        async with forwarding(database):
            [(found, *_)] = await settled(database)
        assert found == state
        assert len(running.received()) == (1 if state == WEBHOOK_SENT else 0)


async def test_without_a_secret_nothing_is_sent(database: Database, webhooks: Webhooks) -> None:
    before = len(webhooks.received())
    await put(database, f"{webhooks.url}/ok")
    async with forwarding(database, secret=None):
        [(state, _, error)] = await settled(database)
    assert state == WEBHOOK_DEAD
    assert "FRONTDESK_WEBHOOK_SECRET" in (error or "")
    assert len(webhooks.received()) == before


@shows("SCHEDULE-WEBHOOK")
async def test_neither_the_secret_nor_an_address_is_logged_or_kept_with_the_error(
    database: Database, webhooks: Webhooks
) -> None:
    await put(database, f"{webhooks.url}/status/500/path-token?key=query-token")
    await put(database, f"{webhooks.url}/ok/path-token?key=query-token")
    with capture_logs() as logs:
        async with forwarding(database):
            found = await settled(database)
    assert [state for state, *_ in found] == [WEBHOOK_DEAD, WEBHOOK_SENT]
    told = f"{logs}{found}"
    for secret in (SECRET.get_secret_value(), "path-token", "query-token", "All is well"):
        assert secret not in told
    told_as = {"webhook_failed": "warning", "webhook_dead": "error", "webhook_sent": "info"}
    assert {line["event"]: line["log_level"] for line in logs} == told_as


@shows("SCHEDULE-WEBHOOK")
async def test_several_workers_send_each_answer_once(database: Database, webhooks: Webhooks) -> None:
    here = f"/ok/{uuid4()}"
    sent = [await put(database, webhooks.url + here, schedule_id=number) for number in range(60)]
    async with forwarding(database), forwarding(database):
        assert {state for state, *_ in await settled(database)} == {WEBHOOK_SENT}
    ids = [one.headers["x-frontdesk-delivery"] for one in webhooks.received(here)]
    assert sorted(ids) == sorted(one.occurrence_id for one in sent)


@shows("SCHEDULE-WEBHOOK")
async def test_what_a_lost_worker_had_taken_comes_up_again_and_its_late_word_counts_for_nothing(
    database: Database, webhooks: Webhooks
) -> None:
    store = WebhookStore(database)
    await put(database, f"{webhooks.url}/ok")
    now = now_us()
    [lost] = await store.claim(10, now, now + 1_000_000)
    assert await store.claim(10, now, now + 1_000_000) == []
    [taken] = await store.claim(10, now + 1_000_000, now + 2_000_000)
    assert (taken.id, taken.attempt) == (lost.id, 2)
    await store.sent(lost)
    assert await states(database) == [(WEBHOOK_WAITING, 2, None)]
    await store.failed(taken, "No.", None)
    await store.sent(taken)
    assert await states(database) == [(WEBHOOK_DEAD, 2, "No.")]


async def test_the_next_time_is_that_of_the_first_that_waits(database: Database) -> None:
    store = WebhookStore(database)
    assert await store.next_us() is None
    await put(database, "http://127.0.0.1:9/")
    await put(database, "http://127.0.0.1:9/")
    now = now_us()
    first, second = await store.claim(10, now, now)
    await store.failed(first, "No.", now + 5)
    await store.failed(second, "No.", now + 3)
    assert await store.next_us() == now + 3
    assert isinstance((await store.claim(1, now + 4, now + 9))[0], WebhookCall)


def leading(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """Make names resolve to these addresses, one after the other; gives the names that were looked up."""
    asked: list[str] = []
    left = list(answers)

    async def look_up(host: str, port: int, **_: object) -> list[Any]:
        asked.append(host)
        address = left.pop(0) if len(left) > 1 else left[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr("frontdesk.schedules.webhooks.anyio.getaddrinfo", look_up)
    return asked


def made_certificate(folder: Path, name: str) -> tuple[str, str]:
    """A self-signed certificate for a name, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    return str(files[0]), str(files[1])


class Moody(WebhookStore):
    """Fails a few times, also with an unexpected error."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._troubles: list[Exception] = [ZeroDivisionError(), Unstorable("a value"), Unavailable("away")]

    @override
    async def claim(self, most: int, now_us: int, until_us: int) -> Sequence[WebhookCall]:
        if self._troubles:
            raise self._troubles.pop()
        return await super().claim(most, now_us, until_us)


async def test_whatever_fails_while_looking_is_looked_for_again(
    database: Database, webhooks: Webhooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.schedules.webhooks.DATABASE_SECONDS", 0.01)
    await put(database, f"{webhooks.url}/ok?token=moody")
    service = WebhookForwarder(Moody(database), SECRET, private=True, pace=QUICK)
    with capture_logs() as logs:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(service.run)
            assert await settled(database) == [(WEBHOOK_SENT, 1, None)]
            tasks.cancel_scope.cancel()
    assert [line["event"] for line in logs][:3] == ["webhooks_wait", "webhooks_wait", "webhooks_failed"]
