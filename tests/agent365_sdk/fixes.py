"""The fixes, each as a rule that recognizes exactly the differences that it causes."""

import base64
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

import jwt

from frontdesk.agent365 import (
    ChatHistoryRefused,
    DiscoveryFailed,
    InvalidArgument,
    ManifestUnreadable,
    PlatformError,
    PlatformTimeout,
    PlatformUnreadable,
    TokenNotObtained,
)
from tests.agent365_sdk.cases import MANIFEST, Case, Listing, Refusal
from tests.agent365_sdk.relay import RelayedAnswer
from tests.agent365_sdk.running import Difference, Listed, Raised, Run, Sent, differences

# Both runs of one case, and helpers for the rules


CLAIMS = ("xms_par_app_azp", "appid", "azp")
VISIBLE = re.compile(r"[\x20-\x7e]+")
BEARER = re.compile(r"\s*bearer\s+", re.IGNORECASE)
LONGEST = 256
# The places where the two sides differ when one of them sends nothing, or gets another answer.
ENDS = frozenset({"requests", "outcome", "words", "succeeded", "errors"})


@dataclass(frozen=True, slots=True)
class Pair:
    """A case and the run of each side; `platform` is the address for both."""

    case: Case
    sdk: Run
    ours: Run
    platform: str

    @property
    def listing(self) -> Listing | None:
        return self.case.call if isinstance(self.case.call, Listing) else None

    @property
    def is_chat(self) -> bool:
        return self.listing is None

    @property
    def targets_differ(self) -> bool:
        return any(
            theirs.target != mine.target for theirs, mine in zip(self.sdk.requests, self.ours.requests, strict=False)
        )

    def variable(self, name: str) -> str | None:
        said = self.case.environment.get(name)
        return None if said is None else said.replace("{platform}", self.platform)


Rule = Callable[[Pair, Difference], bool]


def error_of(run: Run) -> BaseException | None:
    """The error that a run raised, or gave as the reason of a failure."""
    match run.outcome:
        case Raised(error=error):
            return error
        case Sent(errors=errors) if errors:
            return errors[0]
        case _:
            return None


def words_of(run: Run) -> str:
    error = error_of(run)
    return "" if error is None else str(error)


def bare(token: str) -> str:
    return BEARER.sub("", token, count=1).strip()


def sendable(value: object) -> bool:
    """Whether a header can hold the text unchanged."""
    return isinstance(value, str) and bool(VISIBLE.fullmatch(value.strip())) and len(value.strip()) <= LONGEST


def reached(whole: object, *path: str) -> Any:
    """The value at a path of attributes, or None."""
    for name in path:
        try:
            whole = getattr(whole, name, None)
        except (TypeError, RuntimeError):
            return None
    return whole


def sdk_id(pair: Pair) -> object:
    """The id that the SDK finds on the turn or otherwise in the token, usable or not."""
    call = pair.listing
    if call is None:
        return None
    said = reached(call.turn, "activity", "from_", "agentic_app_blueprint_id")
    if said or not isinstance(call.token, str):
        return said
    try:
        claims = jwt.decode(call.token, options={"verify_signature": False})
    except (jwt.InvalidTokenError, UnicodeEncodeError):
        return None
    return next((claims[name] for name in CLAIMS if claims.get(name)), None)


# Fixes for answers, and for missing answers


SHOWN = 2000
TOO_LARGE = "larger than 8 MiB"


def timeouts(pair: Pair, found: Difference) -> bool:
    """A time-out is reported as one, with how long the client waited."""
    error = error_of(pair.ours)
    exchanged = found.where in {"words", "type"} and isinstance(error_of(pair.sdk), TimeoutError) and not pair.is_chat
    waited = f"{pair.case.seconds:g} s" in words_of(pair.ours)
    return isinstance(error, PlatformTimeout) and waited and (found.where == "reason" or exchanged)


def broken_turns(pair: Pair, found: Difference) -> bool:
    """A turn that lacks something, or raises when it is read, is treated as a turn without it."""
    theirs, mine = error_of(pair.sdk), error_of(pair.ours)
    own = isinstance(theirs, AttributeError) or str(theirs).endswith("not here")
    carried_on = mine is None and len(pair.ours.requests) == 1
    return own and (isinstance(mine, InvalidArgument) or carried_on) and (found.where in ENDS or found.where == "type")


def typed_errors(pair: Pair, found: Difference) -> bool:
    """Each failure has a type, and all types have one base class."""
    theirs, mine = error_of(pair.sdk), error_of(pair.ours)
    anonymous = type(theirs) is Exception or pair.is_chat
    return found.where == "type" and anonymous and isinstance(mine, PlatformError) and not isinstance(mine, Refusal)


def redacted_tokens(pair: Pair, found: Difference) -> bool:
    """No error contains the token, whoever repeats it."""
    token = pair.listing.token if pair.listing else None
    if found.where != "words" or not token or token not in str(found.sdk):
        return False
    return found.ours == str(found.sdk).replace(token, "[token]")[: len(str(found.ours))] and token[:4] not in str(
        found.ours
    )


def bounded_bodies(pair: Pair, found: Difference) -> bool:
    """No answer is read without a limit, or shown whole."""
    if found.where in {"words", "message"} and TOO_LARGE not in words_of(pair.ours):
        return str(found.sdk).startswith(str(found.ours)) and str(found.ours).endswith("a" * SHOWN)
    return found.where in ENDS and TOO_LARGE in words_of(pair.ours)


def redirects(pair: Pair, found: Difference) -> bool:
    """The client follows no redirect."""
    error = error_of(pair.ours)
    stayed = isinstance(error, DiscoveryFailed | ChatHistoryRefused) and 300 <= error.status < 400
    return (
        stayed
        and len(pair.ours.requests) == 1 < len(pair.sdk.requests)
        and (found.where in ENDS or found.where == "status")
    )


def retries(pair: Pair, found: Difference) -> bool:
    """Errors that may pass are retried, three attempts in all, each with the same request.

    The HTTP client of both repeats a request itself if the platform drops the connection: that is one attempt.
    """
    sent = {(request.target, request.headers) for request in pair.ours.requests}
    repeated = len(sent) == 1 and len(pair.sdk.requests) < len(pair.ours.requests) <= 3 * len(pair.sdk.requests)
    return pair.case.retries is None and repeated and found.where in ENDS


def bom(pair: Pair, found: Difference) -> bool:
    """A byte order mark is not an error."""
    return found.where == "outcome" and "Unexpected UTF-8 BOM" in words_of(pair.sdk) and error_of(pair.ours) is None


def charsets(pair: Pair, found: Difference) -> bool:
    """Bytes outside the declared charset are replaced; an unknown charset is read as UTF-8."""
    words = words_of(pair.sdk)
    lost = any(said in words for said in ("codec can't decode", "codec failed", "is not a text encoding"))
    return lost and (found.where in ENDS or found.where == "status")


def no_compression(pair: Pair, found: Difference) -> bool:
    """The client requests uncompressed answers, and reports a compressed one."""
    packed = any(
        isinstance(it, RelayedAnswer) and ("content-encoding", "gzip") in it.headers for it in pair.case.answers
    )
    told = "though asked not to" in words_of(pair.ours)
    refused = isinstance(error_of(pair.ours), PlatformUnreadable | DiscoveryFailed | ChatHistoryRefused)
    return packed and told and refused and (found.where in ENDS or found.where == "message")


ANSWER_RULES: Mapping[str, Rule] = {
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


# Fixes for requests: addresses, headers and the ids in them


AGENT = "header x-ms-agentid"
CORRELATION = "header x-ms-correlation-id"
# How the SDK's library reports a header that it cannot send.
CONTROL = "Forbidden control character detected in headers"
NO_TEXT = "Cannot serialize non-str key"
LONGEST_TOKEN = 16_384


def endpoint(pair: Pair, found: Difference) -> bool:
    """`MCP_PLATFORM_ENDPOINT` with slashes or spaces, empty, or with something that is not an address."""
    said = pair.variable("MCP_PLATFORM_ENDPOINT")
    if said is None or said == pair.platform or (said.startswith(f"{pair.platform}/base") and not said.endswith("/")):
        return False
    clean = said.strip().rstrip("/") or "https://agent365.svc.cloud.microsoft"
    if found.where == "target":
        return re.sub("/+", "/", str(found.sdk)) == found.ours
    if found.where == "server url":
        return str(found.ours["value"]).startswith(f"{clean}/agents/servers/")
    told = "MCP_PLATFORM_ENDPOINT must be" in words_of(pair.ours)
    if found.where == "server left out":
        return not _is_address(clean)
    return (found.where in ENDS or found.where in ("status", "message")) and (told or pair.targets_differ)


def encoded_names(pair: Pair, found: Difference) -> bool:
    """Ids and names that would leave their part of an address are escaped; those that cannot be are refused."""
    call = pair.listing
    if call is None:
        return False
    app, name = str(call.app_id), str(_field(found, "mcp_server_name"))
    match found.where:
        case "target":
            return str(found.ours).endswith(f"/agents/v2/{quote(app, safe='', errors='replace')}/mcpServers")
        case "server url":
            return str(found.ours["value"]).endswith(f"/agents/servers/{quote(name, safe='')}")
        case "server left out":
            return _cannot_be_part(name) and str(_field(found, "url")).endswith(f"/agents/servers/{name}")
        case "outcome" if isinstance(error_of(pair.sdk), UnicodeEncodeError):
            return error_of(pair.ours) is None
        case where:
            refused = _cannot_be_part(app) and "not only dots" in words_of(pair.ours)
            return where in ENDS and (refused or pair.targets_differ)


def bare_tokens(pair: Pair, found: Difference) -> bool:
    """The word Bearer and spaces around a token."""
    call = pair.listing
    if call is None:
        return False
    if found.where == "server headers":
        return _is_bared(found.sdk["value"], found.ours["value"])
    clean = bare(str(call.token))
    match found.where:
        case "header authorization":
            return clean != call.token and found.ours == f"Bearer {clean}"
        case "header x-ms-agentid":
            claimed = clean != call.token and _claimed(clean)
            return sdk_id(pair) is None and bool(claimed) and found.ours == claimed
        case where:
            return where in ENDS and _stumbled(pair) and str(call.token).endswith("\n")


def real_activities(pair: Pair, found: Difference) -> bool:
    """The blueprint id where the host's own classes have it."""
    call = pair.listing
    sender = reached(call and call.turn, "activity", "from_property")
    return found.where == AGENT and bool(found.ours) and found.ours == reached(sender, "agenticAppBlueprintId")


def unusable_ids(pair: Pair, found: Difference) -> bool:
    """Ids that a header cannot hold: the client takes the next source."""
    call = pair.listing
    if call is None or not (found.where in ENDS or found.where in (AGENT, CORRELATION)):
        return False
    said, turned = sdk_id(pair), reached(call.turn, "activity", "id")
    wrong = bool(said) and not sendable(said)
    # Any text is a correlation id; a missing or blank one is replaced with a new id.
    turned_wrong = bool(turned) and not (isinstance(turned, str) and turned.strip())
    if found.where == CORRELATION:
        return turned_wrong and sendable(found.ours)
    if found.where == AGENT:
        return wrong and (found.ours is None or sendable(found.ours))
    return (wrong or turned_wrong) and _stumbled(pair)


def token_forms(pair: Pair, found: Difference) -> bool:
    """Tokens whose claims are readable though the rest is odd, and tokens that are too long to read."""
    call = pair.listing
    if call is None or found.where != AGENT or not isinstance(call.token, str):
        return False
    if len(call.token) > LONGEST_TOKEN:
        return found.sdk == _claimed(call.token) and found.ours != found.sdk
    return sdk_id(pair) is None and found.ours is not None and found.ours == _claimed(call.token)


def project_names(pair: Pair, found: Difference) -> bool:
    """The project's name as TOML defines it."""
    file = pair.case.files.get("pyproject.toml")
    if found.where != AGENT or file is None or pair.variable("AGENT365_APPLICATION_NAME"):
        return False
    try:
        named = tomllib.loads(file.decode("utf-8-sig")).get("project", {}).get("name")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        named = None
    return found.ours == named != found.sdk


def channel_headers(pair: Pair, found: Difference) -> bool:
    """The channel of a turn, and its sub-channel."""
    turn = pair.case.call.turn
    whole = reached(turn, "activity", "channel_id")
    channel, _, within = str(whole or "").partition(":")
    inner = reached(turn, "activity", "channel_id_sub_channel") or within
    said = {"header x-ms-channel-id": channel, "header x-ms-subchannel-id": inner}.get(found.where)
    return bool(said) and found.sdk is None and _is_plain(found.ours, said)


def plain_headers(pair: Pair, found: Difference) -> bool:
    """Text from outside, in a form that a header can hold."""
    call = pair.case.call
    name = pair.variable("AGENT365_APPLICATION_NAME") if pair.listing else None
    said = {
        "header user-agent": call.orchestrator,
        CORRELATION: reached(call.turn, "activity", "id"),
        AGENT: name,
    }
    if found.where in ENDS:
        return _stumbled(pair) and any(isinstance(it, str) and "\n" in it for it in said.values())
    text = said.get(found.where)
    if not isinstance(text, str):
        return False
    if found.where == "header user-agent":
        return _is_plain(re.sub(r"^[^;]*; Python [^;)]*(; )?|\)$", "", str(found.ours)), text)
    return found.ours is None or _is_plain(found.ours, text)


REQUEST_RULES: Mapping[str, Rule] = {
    "endpoint": endpoint,
    "encoded-names": encoded_names,
    "bare-tokens": bare_tokens,
    "real-activities": real_activities,
    "unusable-ids": unusable_ids,
    "token-forms": token_forms,
    "project-names": project_names,
    "channel-headers": channel_headers,
    "plain-headers": plain_headers,
}


def _is_bared(theirs: Mapping[str, str] | None, mine: Mapping[str, str] | None) -> bool:
    if not theirs or not mine:
        return False
    said, heard = (headers["Authorization"].removeprefix("Bearer ") for headers in (theirs, mine))
    return said != heard == bare(said)


def _stumbled(pair: Pair) -> bool:
    """Whether the SDK could not send what our client sent."""
    words = words_of(pair.sdk)
    return (CONTROL in words or NO_TEXT in words) and not pair.sdk.requests and len(pair.ours.requests) == 1


def _claimed(token: str) -> object:
    """The id in a token's second part, whatever the other parts are."""
    if token.count(".") != 2:
        return None
    part = token.split(".")[1]
    try:
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except ValueError:
        return None
    if not isinstance(claims, dict):
        return None
    said = cast("dict[str, object]", claims)
    return next((said[name] for name in CLAIMS if said.get(name)), None)


def _is_plain(sent: object, said: str) -> bool:
    """Whether this is that text in visible ASCII: all its letters and digits in order, up to the limit."""
    if not isinstance(sent, str) or not (sent.isascii() and sent.isprintable()) or len(sent) > LONGEST:
        return False
    kept, meant = (re.sub(r"[^A-Za-z0-9]", "", text) for text in (sent, said))
    accents = [char for char in said if not char.isascii() and char.isalnum()]
    return kept == meant[:LONGEST] or (bool(accents) and len(kept) == len(meant) + len(accents))


def _cannot_be_part(name: str) -> bool:
    return not name.strip(".") or len(name) > LONGEST or any("\ud800" <= char <= "\udfff" for char in name)


def _is_address(text: str) -> bool:
    return bool(re.fullmatch(r"https?://[^@?#/\[\]]+(/[^@?#]*)?", text))


def _field(found: Difference, name: str) -> object:
    """The server that differs; nothing for other differences."""
    return (found.sdk or found.ours).get(name) if found.where.startswith("server ") else None


# Fixes for discovered servers, and for their tokens


ADDRESS = re.compile(r"https?://[^\s@/\[\]]+(/[!-~]*)?", re.IGNORECASE)
LONGEST_ADDRESS = 2000
CONNECTIONS = frozenset(
    {"server id", "server all_connections_url", "server missing_connections_url", "server connectivity_status"}
)


def dev_tokens(pair: Pair, found: Difference) -> bool:
    """A server's own variable applies to that server only."""
    if found.where != "server headers":
        return False
    own = pair.variable(f"BEARER_TOKEN_{str(found.ours['mcp_server_name']).upper()}")
    token = bare(own or pair.variable("BEARER_TOKEN") or "")
    return found.ours["value"] == ({"Authorization": f"Bearer {token}"} if token else None)


def unsendable_tokens(pair: Pair, found: Difference) -> bool:
    """Tokens that a header cannot hold are refused before sending, and not quoted."""
    error = error_of(pair.ours)
    if not isinstance(error, InvalidArgument | TokenNotObtained):
        return False
    about = re.search(r"token|BEARER_TOKEN", str(error)) is not None
    given = [pair.listing.token] if pair.listing else []
    given += [said for name, said in pair.case.environment.items() if name.startswith("BEARER_TOKEN")]
    quoted = any(isinstance(said, str) and len(said.strip()) > 1 and said in str(error) for said in given)
    late = found.where == "type" and isinstance(error_of(pair.sdk), AttributeError)
    return about and not quoted and (found.where in ENDS or late) and len(pair.ours.requests) <= len(pair.sdk.requests)


def unique_names(_pair: Pair, found: Difference) -> bool:
    """A server with only a unique name uses that as its name."""
    named = found.where == "server added"
    return named and found.ours["mcp_server_name"] == found.ours["mcp_server_unique_name"]


def unusable_urls(_pair: Pair, found: Difference) -> bool:
    """Servers with an unusable address of their own are left out."""
    if found.where != "server left out":
        return False
    url = str(found.sdk["url"])
    return len(url) > LONGEST_ADDRESS or not ADDRESS.fullmatch(url)


def connections(_pair: Pair, found: Difference) -> bool:
    """The platform's messages about accounts that are not connected yet."""
    return found.where in CONNECTIONS and found.sdk["value"] is None


def manifest_shape(pair: Pair, found: Difference) -> bool:
    """A manifest that is plain text is reported, and one that is a list causes no crash."""
    file = pair.case.files.get(MANIFEST) or pair.case.files.get(f"../{MANIFEST}") or b""
    if found.where != "outcome":
        return False
    if file.startswith(b'"'):
        return isinstance(error_of(pair.ours), ManifestUnreadable) and pair.sdk.outcome == Listed(())
    return file.startswith(b"[") and pair.ours.outcome == Listed(()) and "list indices" in words_of(pair.sdk)


SERVER_RULES: Mapping[str, Rule] = {
    "dev-tokens": dev_tokens,
    "unsendable-tokens": unsendable_tokens,
    "unique-names": unique_names,
    "unusable-urls": unusable_urls,
    "connections": connections,
    "manifest-shape": manifest_shape,
}


# In the order of the checks: the first rule that recognizes a difference explains it.
RULES: Mapping[str, Rule] = {**REQUEST_RULES, **SERVER_RULES, **ANSWER_RULES}


def observed(pair: Pair) -> frozenset[str]:
    """The fixes that a pair of runs shows; an unexplained difference stays in the result unchanged."""
    return frozenset(
        next((fix for fix, knows in RULES.items() if knows(pair, found)), f"unexplained: {found}")
        for found in differences(pair.sdk, pair.ours)
    )
