"""Fixes of what becomes of an answer, or of none."""

from collections.abc import Mapping

from frontdesk.agent365 import (
    ChatHistoryRefused,
    DiscoveryFailed,
    InvalidArgument,
    PlatformError,
    PlatformTimeout,
    PlatformUnreadable,
)
from tests.referees.platform.cases import Refusal
from tests.referees.platform.comparing import Difference
from tests.referees.platform.fixes.pair import ENDS, Pair, Rule, error_of, words_of
from tests.referees.platform.relay import RelayedAnswer

SHOWN = 2000
TOO_LARGE = "larger than 8 MiB"


def timeouts(pair: Pair, found: Difference) -> bool:
    """A time-out says that it is one, and how long was waited."""
    error = error_of(pair.ours)
    exchanged = found.where in {"words", "type"} and isinstance(error_of(pair.sdk), TimeoutError) and not pair.is_chat
    waited = f"{pair.case.seconds:g} s" in words_of(pair.ours)
    return isinstance(error, PlatformTimeout) and waited and (found.where == "reason" or exchanged)


def broken_turns(pair: Pair, found: Difference) -> bool:
    """A turn that lacks something, or raises when it is looked at, is a turn without it."""
    theirs, mine = error_of(pair.sdk), error_of(pair.ours)
    own = isinstance(theirs, AttributeError) or str(theirs).endswith("not here")
    carried_on = mine is None and len(pair.ours.requests) == 1
    return own and (isinstance(mine, InvalidArgument) or carried_on) and (found.where in ENDS or found.where == "type")


def typed_errors(pair: Pair, found: Difference) -> bool:
    """Each failure has a type, and all of them one above."""
    theirs, mine = error_of(pair.sdk), error_of(pair.ours)
    anonymous = type(theirs) is Exception or pair.is_chat
    return found.where == "type" and anonymous and isinstance(mine, PlatformError) and not isinstance(mine, Refusal)


def redacted_tokens(pair: Pair, found: Difference) -> bool:
    """The token is not in what is raised, whoever repeats it."""
    token = pair.listing.token if pair.listing else None
    if found.where != "words" or not token or token not in str(found.sdk):
        return False
    return found.ours == str(found.sdk).replace(token, "[token]")[: len(str(found.ours))] and token[:4] not in str(
        found.ours
    )


def bounded_bodies(pair: Pair, found: Difference) -> bool:
    """No answer is read without end, nor shown."""
    if found.where in {"words", "message"} and TOO_LARGE not in words_of(pair.ours):
        return str(found.sdk).startswith(str(found.ours)) and str(found.ours).endswith("a" * SHOWN)
    return found.where in ENDS and TOO_LARGE in words_of(pair.ours)


def redirects(pair: Pair, found: Difference) -> bool:
    """Nobody is followed elsewhere."""
    error = error_of(pair.ours)
    stayed = isinstance(error, DiscoveryFailed | ChatHistoryRefused) and 300 <= error.status < 400
    return (
        stayed
        and len(pair.ours.requests) == 1 < len(pair.sdk.requests)
        and (found.where in ENDS or found.where == "status")
    )


def retries(pair: Pair, found: Difference) -> bool:
    """What may pass is tried again, three times in all, and every time with the same request.

    The HTTP client of both asks once more by itself where the platform hangs up, and so counts as one try.
    """
    sent = {(request.target, request.headers) for request in pair.ours.requests}
    repeated = len(sent) == 1 and len(pair.sdk.requests) < len(pair.ours.requests) <= 3 * len(pair.sdk.requests)
    return pair.case.retries is None and repeated and found.where in ENDS


def bom(pair: Pair, found: Difference) -> bool:
    """A byte order mark is no mistake."""
    return found.where == "outcome" and "Unexpected UTF-8 BOM" in words_of(pair.sdk) and error_of(pair.ours) is None


def charsets(pair: Pair, found: Difference) -> bool:
    """Bytes that are not in the charset they should be in are replaced; a charset that nobody knows is UTF-8."""
    words = words_of(pair.sdk)
    lost = any(said in words for said in ("codec can't decode", "codec failed", "is not a text encoding"))
    return lost and (found.where in ENDS or found.where == "status")


def no_compression(pair: Pair, found: Difference) -> bool:
    """Answers are asked for as they are, and one that is compressed is told of."""
    packed = any(
        isinstance(it, RelayedAnswer) and ("content-encoding", "gzip") in it.headers for it in pair.case.answers
    )
    told = "though asked not to" in words_of(pair.ours)
    refused = isinstance(error_of(pair.ours), PlatformUnreadable | DiscoveryFailed | ChatHistoryRefused)
    return packed and told and refused and (found.where in ENDS or found.where == "message")


RULES: Mapping[str, Rule] = {
    "timeouts": timeouts,
    "broken-turns": broken_turns,
    "typed-errors": typed_errors,
    "redacted-tokens": redacted_tokens,
    "bounded-bodies": bounded_bodies,
    "redirects": redirects,
    "retries": retries,
    "bom": bom,
    "charsets": charsets,
    "no-compression": no_compression,
}
