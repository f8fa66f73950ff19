"""Where webhooks may lead: not to this machine or a private network, whatever name such an address hides behind."""

import ipaddress
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

import anyio

from frontdesk.errors import Invalid
from frontdesk.schedule.forwards.model import Unsent

LONGEST_URL = 2000
RESOLVE_SECONDS = 5
# Behind these prefixes stands an IPv4 address, which is where a packet ends up.
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
HERE = ("localhost", ".localhost")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def check_webhook(url: str, *, signed: bool, private: bool) -> None:
    """Refuse an address that could not be sent to; names are looked up only when something is sent."""
    if not signed:
        raise Invalid("Answers to webhooks are signed; set FRONTDESK_WEBHOOK_SECRET first")
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise Invalid(f"A webhook is an http:// or https:// URL of at most {LONGEST_URL} plain characters")
    host = _host(url)
    if private:
        return
    written = _written(host)
    if host.lower().rstrip(".").endswith(HERE) or (written is not None and not is_public(written)):
        raise Invalid(
            f"The webhook's host '{host}' is this machine or on a private network; "
            "FRONTDESK_WEBHOOK_PRIVATE=true allows that"
        )


async def addresses(host: str, port: int, *, private: bool) -> Sequence[str]:
    """The addresses behind a name that may be sent to, as they are now.

    Whoever connects must connect to one of these: asked once more, a name may lead elsewhere.
    """
    try:
        with anyio.fail_after(RESOLVE_SECONDS):
            found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError) as error:
        raise Unsent(f"The host name '{host}' cannot be resolved") from error
    every = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
    allowed = [address for address in every if private or is_public(ipaddress.ip_address(address))]
    if not allowed:
        raise Unsent(
            f"The name '{host}' leads to this machine or a private network; FRONTDESK_WEBHOOK_PRIVATE=true allows that",
            permanent=True,
        )
    return allowed


def is_public(address: Address) -> bool:
    """Whether anybody on the internet could be meant by this address."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address.teredo is not None or address.is_site_local:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _host(url: str) -> str:
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


def _written(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
