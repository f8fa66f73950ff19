"""Sends answers to webhooks in the background: signed, to public addresses, with retries up to a limit."""

import hashlib
import hmac
import ipaddress
import random
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from urllib.parse import urlsplit

import anyio
import httpx2
import structlog
from anyio.abc import TaskGroup
from pydantic import SecretStr

from frontdesk import __version__
from frontdesk.background import BackgroundJob
from frontdesk.errors import Invalid
from frontdesk.schedules.delivery_rules import backoff_s
from frontdesk.schedules.model import SECOND, now_us
from frontdesk.schedules.webhook_store import WebhookCall, WebhookStore
from frontdesk.text import parse_retry_after


@dataclass(frozen=True, slots=True)
class WebhookRetryPolicy:
    """How often and how long a call is tried, about two hours in total; a claim holds it for `lease_seconds`."""

    attempts: int = 12
    first_seconds: float = 5.0
    longest_seconds: float = 3600.0
    lease_seconds: float = 60.0
    send_seconds: float = 15.0

    def wait_s(self, attempt: int, retry_after: float | None, chance: float) -> float:
        """Seconds until the next attempt: at least the receiver's `retry_after`, at most the longest wait."""
        pause = backoff_s(attempt, self.first_seconds, self.longest_seconds, chance)
        return min(max(pause, retry_after or 0.0), self.longest_seconds)


class WebhookNotSent(Exception):
    """A call was not accepted; the message names only the host, because the rest of a URL may be secret.

    `permanent`: a retry will not help. `retry_after`: the seconds that the receiver asked for.
    """

    def __init__(self, error: str, *, permanent: bool = False, retry_after: float | None = None) -> None:
        super().__init__(error)
        self.permanent = permanent
        self.retry_after = retry_after


SIGNATURE_HEADER = "X-Frontdesk-Signature"


def sign_body(secret: SecretStr, body: bytes, now_s: int) -> str:
    """The header's value: `t=…,v1=…`, where v1 is HMAC-SHA256 of "t.body" under the shared secret, in hex."""
    mac = hmac.new(secret.get_secret_value().encode(), b"%d." % now_s + body, hashlib.sha256)
    return f"t={now_s},v1={mac.hexdigest()}"


LONGEST_URL = 2000
RESOLVE_SECONDS = 5
# An address with this prefix contains the IPv4 address that packets go to.
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
LOCAL_HOST_NAMES = ("localhost", ".localhost")

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def check_webhook(url: str, *, signed: bool, private: bool) -> None:
    """Refuse a URL that nothing can be sent to; the host name is resolved only before sending."""
    if not signed:
        raise Invalid("Answers to webhooks are signed; set FRONTDESK_WEBHOOK_SECRET first")
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise Invalid(f"A webhook is an http:// or https:// URL of at most {LONGEST_URL} plain characters")
    host = _webhook_host(url)
    if private:
        return
    address = _literal_address(host)
    if host.lower().rstrip(".").endswith(LOCAL_HOST_NAMES) or (address is not None and not is_public_address(address)):
        raise Invalid(
            f"The webhook's host '{host}' is this machine or on a private network; "
            "FRONTDESK_WEBHOOK_PRIVATE=true allows that"
        )


async def resolve_addresses(host: str, port: int, *, private: bool) -> Sequence[str]:
    """The current addresses of a host name that may be sent to.

    Connect to one of these, and do not resolve the name again: it may have another address by then.
    """
    try:
        with anyio.fail_after(RESOLVE_SECONDS):
            found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError) as error:
        raise WebhookNotSent(f"The host name '{host}' cannot be resolved") from error
    every = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
    allowed = [address for address in every if private or is_public_address(ipaddress.ip_address(address))]
    if not allowed:
        raise WebhookNotSent(
            f"The name '{host}' leads to this machine or a private network; FRONTDESK_WEBHOOK_PRIVATE=true allows that",
            permanent=True,
        )
    return allowed


def is_public_address(address: IpAddress) -> bool:
    """Whether this is an address on the public internet."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public_address(inner)
        if address.teredo is not None or address.is_site_local:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _webhook_host(url: str) -> str:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.port != 0
    except ValueError:
        known, parts = False, urlsplit("")
    if not known or not parts.hostname:
        raise Invalid("A webhook is an http:// or https:// URL")
    if parts.username is not None or parts.password is not None:
        raise Invalid("A webhook's URL must not carry a login: URLs are shown to people")
    return parts.hostname


def _literal_address(host: str) -> IpAddress | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


CONNECT_SECONDS = 5
# At most this many addresses of a host name are tried.
MAX_ADDRESSES = 3
STATUS_GONE = 410
DEFAULT_PORTS = {"http": 80, "https": 443}


class WebhookSender:
    """Posts calls; only the status of a response is read."""

    def __init__(self, secret: SecretStr | None, *, private: bool, seconds: float) -> None:
        self._secret = secret
        self._private = private
        self._seconds = seconds

    async def post(self, call: WebhookCall) -> None:
        """Send a call, or raise `WebhookNotSent`."""
        if self._secret is None:
            raise WebhookNotSent("FRONTDESK_WEBHOOK_SECRET is not set, and nothing goes out unsigned")
        url, body = _parse_url(call.url), call.body.encode()
        headers = {
            "Host": url.netloc.decode(),
            "Content-Type": "application/json",
            "User-Agent": f"frontdesk/{__version__}",
            "X-Frontdesk-Delivery": call.occurrence_id,
            SIGNATURE_HEADER: sign_body(self._secret, body, int(time.time())),
        }
        try:
            with anyio.fail_after(self._seconds):
                status, wait = await self._send(url, headers, body)
        except TimeoutError as error:
            raise WebhookNotSent(f"{url.host} does not answer within {self._seconds:g} s") from error
        _check_status(url.host, status, wait)

    async def _send(self, url: httpx2.URL, headers: Mapping[str, str], body: bytes) -> tuple[int, float | None]:
        port = url.port or DEFAULT_PORTS[url.scheme]
        found = await resolve_addresses(url.host, port, private=self._private)
        failure: Exception | None = None
        for address in found[:MAX_ADDRESSES]:
            try:
                return await self._send_to(address, url, headers, body)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
            except httpx2.HTTPError as error:
                raise WebhookNotSent(f"{url.host} broke off ({type(error).__name__})") from error
        raise WebhookNotSent(f"{url.host} cannot be reached ({type(failure).__name__})") from failure

    async def _send_to(
        self, address: str, url: httpx2.URL, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, float | None]:
        """Send to this address; the request and the check of the certificate use the name."""
        # Each call has its own client: a pool identifies a connection by its address, which several names may share.
        there, name = url.copy_with(host=address), {"sni_hostname": url.host}
        async with (
            self._client() as client,
            client.stream("POST", there, headers=dict(headers), content=body, extensions=name) as response,
        ):
            return response.status_code, parse_retry_after(response.headers.get("retry-after"))

    def _client(self) -> httpx2.AsyncClient:
        # No proxy from the environment, because it would resolve the name again.
        patience = httpx2.Timeout(self._seconds, connect=CONNECT_SECONDS)
        return httpx2.AsyncClient(verify=self._trusted, trust_env=False, follow_redirects=False, timeout=patience)

    @cached_property
    def _trusted(self) -> ssl.SSLContext:
        return httpx2.create_ssl_context()


def _parse_url(url: str) -> httpx2.URL:
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise WebhookNotSent("The webhook's URL cannot be read", permanent=True) from error
    if parsed.scheme not in DEFAULT_PORTS or not parsed.host:
        raise WebhookNotSent("The webhook's URL is not http:// or https://", permanent=True)
    return parsed


def _check_status(host: str, status: int, wait: float | None) -> None:
    if 200 <= status < 300:
        return
    if status == STATUS_GONE:
        raise WebhookNotSent(f"{host} is there no longer (410)", permanent=True)
    redirect = ", and redirects are not followed" if 300 <= status < 400 else ""
    raise WebhookNotSent(f"{host} answers with status {status}{redirect}", retry_after=wait)


MAX_CALLS_AT_ONCE = 16
# How often to look for calls that another process claimed and left; new calls of this process wake the forwarder.
IDLE_SECONDS = 30.0
DATABASE_SECONDS = 5.0

log = structlog.get_logger("frontdesk.schedules")
CLAIM_JOB = BackgroundJob(log, "webhooks_wait", "webhooks_failed")
SEND_JOB = BackgroundJob(log, "webhook_not_settled", "webhook_attempt_failed")


class WebhookForwarder:
    """Sends the stored calls. `run` needs its own task; code that stores new calls must call `wake`."""

    def __init__(
        self,
        store: WebhookStore,
        secret: SecretStr | None,
        *,
        private: bool = False,
        pace: WebhookRetryPolicy | None = None,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self._store = store
        self._retry_policy = pace or WebhookRetryPolicy()
        self._sender = WebhookSender(secret, private=private, seconds=self._retry_policy.send_seconds)
        self._clock = clock
        self._wakeup = anyio.Event()
        self._under_way = 0
        self._rest_seconds = DATABASE_SECONDS

    def wake(self) -> None:
        """Look for new calls now."""
        self._wakeup.set()

    async def run(self) -> None:
        """Send calls until cancelled; an interrupted call is sent again later."""
        async with anyio.create_task_group() as tasks:
            while True:
                self._wakeup = anyio.Event()
                self._rest_seconds = DATABASE_SECONDS
                await CLAIM_JOB.attempt(partial(self._begin, tasks))
                with anyio.move_on_after(self._rest_seconds):
                    await self._wakeup.wait()

    async def _begin(self, tasks: TaskGroup) -> None:
        """Start to send due calls, and set the time of the next look, unless something wakes this first."""
        free = MAX_CALLS_AT_ONCE - self._under_way
        if not free:
            self._rest_seconds = IDLE_SECONDS
            return
        now = self._clock()
        taken = await self._store.claim(free, now, now + int(self._retry_policy.lease_seconds * SECOND))
        for call in taken:
            self._under_way += 1
            tasks.start_soon(self._forward, call)
        next_us = await self._store.next_us() if len(taken) < free else None
        until = IDLE_SECONDS if next_us is None else (next_us - now) / SECOND
        self._rest_seconds = min(max(until, 0.0), IDLE_SECONDS)

    async def _forward(self, call: WebhookCall) -> None:
        try:
            # If the result is unknown it is sent again: the receiver recognises the delivery id.
            await SEND_JOB.attempt(partial(self._attempt, call), delivery_id=call.occurrence_id)
        finally:
            self._under_way -= 1
            self.wake()

    async def _attempt(self, call: WebhookCall) -> None:
        # Only the host, because the rest of a URL is often secret.
        facts = {"delivery_id": call.occurrence_id, "host": urlsplit(call.url).hostname, "attempt": call.attempt}
        try:
            await self._sender.post(call)
        except WebhookNotSent as error:
            over = error.permanent or call.attempt >= self._retry_policy.attempts
            wait = self._retry_policy.wait_s(call.attempt, error.retry_after, random.random())  # noqa: S311 - no secret
            await self._store.failed(call, str(error), None if over else self._clock() + int(wait * SECOND))
            write = log.error if over else log.warning
            write("webhook_dead" if over else "webhook_failed", **facts, error=str(error))
        else:
            await self._store.sent(call)
            log.info("webhook_sent", **facts)
