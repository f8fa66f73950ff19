"""Fixes of what is sent: addresses, headers and the ids in them."""

import base64
import json
import re
import tomllib
from collections.abc import Mapping
from typing import cast
from urllib.parse import quote

from tests.referees.platform.comparing import Difference
from tests.referees.platform.fixes.pair import (
    CLAIMS,
    ENDS,
    LONGEST,
    Pair,
    Rule,
    bare,
    error_of,
    reached,
    sdk_id,
    sendable,
    words_of,
)

AGENT = "header x-ms-agentid"
CORRELATION = "header x-ms-correlation-id"
# How the SDK's library tells of a header that it cannot send.
CONTROL = "Forbidden control character detected in headers"
NO_TEXT = "Cannot serialize non-str key"
LONGEST_TOKEN = 16_384


def endpoint(pair: Pair, found: Difference) -> bool:
    """`MCP_PLATFORM_ENDPOINT` with slashes, spaces, nothing, or something that is no address in it."""
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
    """Ids and names that would leave their part of an address; those that cannot stay in one are refused."""
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
    """The word Bearer and spaces that a token brings along."""
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
    """The blueprint where the host's own classes have it."""
    call = pair.listing
    sender = reached(call and call.turn, "activity", "from_property")
    return found.where == AGENT and bool(found.ours) and found.ours == reached(sender, "agenticAppBlueprintId")


def unusable_ids(pair: Pair, found: Difference) -> bool:
    """Ids that no header can hold: the next source counts."""
    call = pair.listing
    if call is None or not (found.where in ENDS or found.where in (AGENT, CORRELATION)):
        return False
    said, turned = sdk_id(pair), reached(call.turn, "activity", "id")
    wrong = bool(said) and not sendable(said)
    # A correlation id is any text; what is none, or only spaces, is made up for.
    turned_wrong = bool(turned) and not (isinstance(turned, str) and turned.strip())
    if found.where == CORRELATION:
        return turned_wrong and sendable(found.ours)
    if found.where == AGENT:
        return wrong and (found.ours is None or sendable(found.ours))
    return (wrong or turned_wrong) and _stumbled(pair)


def token_forms(pair: Pair, found: Difference) -> bool:
    """Tokens whose claims are there though the rest is odd, and tokens too long to be looked at."""
    call = pair.listing
    if call is None or found.where != AGENT or not isinstance(call.token, str):
        return False
    if len(call.token) > LONGEST_TOKEN:
        return found.sdk == _claimed(call.token) and found.ours != found.sdk
    return sdk_id(pair) is None and found.ours is not None and found.ours == _claimed(call.token)


def project_names(pair: Pair, found: Difference) -> bool:
    """The project's name as TOML has it."""
    file = pair.case.files.get("pyproject.toml")
    if found.where != AGENT or file is None or pair.variable("AGENT365_APPLICATION_NAME"):
        return False
    try:
        named = tomllib.loads(file.decode("utf-8-sig")).get("project", {}).get("name")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        named = None
    return found.ours == named != found.sdk


def channel_headers(pair: Pair, found: Difference) -> bool:
    """The channel of a turn, and the one within it."""
    turn = pair.case.call.turn
    whole = reached(turn, "activity", "channel_id")
    channel, _, within = str(whole or "").partition(":")
    inner = reached(turn, "activity", "channel_id_sub_channel") or within
    said = {"header x-ms-channel-id": channel, "header x-ms-subchannel-id": inner}.get(found.where)
    return bool(said) and found.sdk is None and _is_plain(found.ours, said)


def plain_headers(pair: Pair, found: Difference) -> bool:
    """Text that somebody else wrote, as a header can hold it."""
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


RULES: Mapping[str, Rule] = {
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
    """Whether the SDK could not send what ours did."""
    words = words_of(pair.sdk)
    return (CONTROL in words or NO_TEXT in words) and not pair.sdk.requests and len(pair.ours.requests) == 1


def _claimed(token: str) -> object:
    """The id in a token's second part, whatever stands around it."""
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
    """Whether this is that text in visible ASCII: its letters and figures are all there, in order, up to the limit."""
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
    """Of a server that differs; of anything else nothing."""
    return (found.sdk or found.ours).get(name) if found.where.startswith("server ") else None
