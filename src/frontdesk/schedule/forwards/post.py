"""Posts one answer to its webhook: signed, within a time limit, and only to an address that was looked at."""

import ssl
import time
from collections.abc import Mapping
from functools import cached_property

import anyio
import httpx2
from pydantic import SecretStr

from frontdesk import __version__
from frontdesk.loop.waits import seconds_asked
from frontdesk.schedule.forwards.address import addresses
from frontdesk.schedule.forwards.model import Due, Unsent
from frontdesk.schedule.forwards.signing import SIGNATURE, signature

CONNECT_SECONDS = 5
# Of several addresses behind a name, so many are tried.
TRIED = 3
GONE = 410
PORTS = {"http": 80, "https": 443}


class Poster:
    """What the other side says is not read: its status is all that counts."""

    def __init__(self, secret: SecretStr | None, *, private: bool, seconds: float) -> None:
        self._secret = secret
        self._private = private
        self._seconds = seconds

    async def post(self, due: Due) -> None:
        """Send it, or raise `Unsent`."""
        if self._secret is None:
            raise Unsent("FRONTDESK_WEBHOOK_SECRET is not set, and nothing goes out unsigned")
        url, body = _parsed(due.url), due.body.encode()
        headers = {
            "Host": url.netloc.decode(),
            "Content-Type": "application/json",
            "User-Agent": f"frontdesk/{__version__}",
            "X-Frontdesk-Delivery": due.occurrence_id,
            SIGNATURE: signature(self._secret, body, int(time.time())),
        }
        try:
            with anyio.fail_after(self._seconds):
                status, wait = await self._send(url, headers, body)
        except TimeoutError as error:
            raise Unsent(f"{url.host} does not answer within {self._seconds:g} s") from error
        _check(url.host, status, wait)

    async def _send(self, url: httpx2.URL, headers: Mapping[str, str], body: bytes) -> tuple[int, float | None]:
        port = url.port or PORTS[url.scheme]
        found = await addresses(url.host, port, private=self._private)
        failure: Exception | None = None
        for address in found[:TRIED]:
            try:
                return await self._send_to(address, url, headers, body)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
            except httpx2.HTTPError as error:
                raise Unsent(f"{url.host} broke off ({type(error).__name__})") from error
        raise Unsent(f"{url.host} cannot be reached ({type(failure).__name__})") from failure

    async def _send_to(
        self, address: str, url: httpx2.URL, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, float | None]:
        """To this very address; the name goes into the request and is what a certificate must be for."""
        # A client for each: a kept connection would be known by its address, and that may be several names'.
        there, name = url.copy_with(host=address), {"sni_hostname": url.host}
        async with (
            self._client() as client,
            client.stream("POST", there, headers=dict(headers), content=body, extensions=name) as response,
        ):
            return response.status_code, seconds_asked(response.headers.get("retry-after"))

    def _client(self) -> httpx2.AsyncClient:
        # No proxy of the surroundings: it would look the name up once more.
        patience = httpx2.Timeout(self._seconds, connect=CONNECT_SECONDS)
        return httpx2.AsyncClient(verify=self._trusted, trust_env=False, follow_redirects=False, timeout=patience)

    @cached_property
    def _trusted(self) -> ssl.SSLContext:
        return httpx2.create_ssl_context()


def _parsed(url: str) -> httpx2.URL:
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise Unsent("The webhook's URL cannot be read", permanent=True) from error
    if parsed.scheme not in PORTS or not parsed.host:
        raise Unsent("The webhook's URL is not http:// or https://", permanent=True)
    return parsed


def _check(host: str, status: int, wait: float | None) -> None:
    if 200 <= status < 300:
        return
    if status == GONE:
        raise Unsent(f"{host} is there no longer (410)", permanent=True)
    redirect = ", and redirects are not followed" if 300 <= status < 400 else ""
    raise Unsent(f"{host} answers with status {status}{redirect}", retry_after=wait)
