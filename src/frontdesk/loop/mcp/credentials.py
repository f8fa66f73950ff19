"""Which values that a server is sent are secret, and what it says without them, as servers quote them; pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import cast

from frontdesk.loop.mcp.model import bare_token

# Shorter values are words such as `true`, and without those nothing readable would be left.
SHORTEST = 6
REDACTED = "[token]"
# What these say is told anyway. Under any other name there may be a key.
PLAIN = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "content-type",
        "host",
        "origin",
        "referer",
        "user-agent",
        "x-agent-id",
        "x-ms-agentid",
        "x-ms-channel-id",
        "x-ms-correlation-id",
        "x-ms-subchannel-id",
        "x-request-id",
    }
)
# Their values begin with the name of a scheme, which is no secret.
WITH_SCHEME = frozenset({"authorization", "proxy-authorization"})


def credentials(headers: Mapping[str, str]) -> frozenset[str]:
    """What is secret in headers, each bare: a server may quote it with or without what stands before it."""
    said = [(name.lower(), value) for name, value in headers.items()]
    found = {secret for name, value in said if name not in PLAIN for secret in _secrets(name, value)}
    return frozenset(secret for secret in found if len(secret) >= SHORTEST)


def without(text: str, secrets: Iterable[str]) -> str:
    """The text with a sign in the place of each secret; the longest first, as one may be a part of another."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return text


def within(value: object, redacted: Callable[[str], str]) -> object:
    """A value of JSON with each text in it redacted, however deep."""
    match value:
        case str():
            return redacted(value)
        case dict():
            pairs = cast("dict[str, object]", value).items()
            return {redacted(name): within(one, redacted) for name, one in pairs}
        case list():
            return [within(one, redacted) for one in cast("list[object]", value)]
        case _:
            return value


def _secrets(name: str, value: str) -> Iterable[str]:
    bare = bare_token(value) or ""
    if name in WITH_SCHEME:
        return (bare.partition(" ")[2].strip() or bare,)
    if name == "cookie":
        return [part.partition("=")[2].strip() for part in bare.split(";")]
    return (bare,)
