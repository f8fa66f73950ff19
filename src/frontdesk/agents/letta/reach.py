"""Says why Letta does not come to Frontdesk, and what to do about it."""

from collections.abc import Generator
from contextlib import contextmanager

from frontdesk.errors import ConfigurationError, Invalid, NotFound

# How Letta 0.16.7 and later refuse a server that is not on the public Internet.
GUARD = ("Non-public IP", "non-public IP", "Blocked internal hostname")


@contextmanager
def explained(url: str) -> Generator[None]:
    """Turns Letta's refusal to use this address of ours into words."""
    try:
        yield
    except (Invalid, NotFound) as error:
        if any(word in f"{error} {error.__cause__ or ''}" for word in GUARD):
            raise ConfigurationError(
                f"This Letta server (0.16.7 or later) refuses MCP servers that are not on the public Internet, and "
                f"{url} is not. Give Frontdesk a public address (FRONTDESK_PUBLIC_URL, e.g. through a tunnel) and "
                "connect again, or see docs/guide/letta.md for the other ways"
            ) from error
        if isinstance(error, Invalid):
            raise
        raise ConfigurationError(
            f"The Letta server could not read the tools at {url}. Frontdesk must run there, on the same data as this "
            "command, and the machine that Letta runs on must reach it (--url gives another address)"
        ) from error
