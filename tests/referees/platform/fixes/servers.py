"""Fixes of the servers that are found, and of the tokens that they get."""

import re
from collections.abc import Mapping

from frontdesk.agent365 import InvalidArgument, ManifestUnreadable, TokenNotObtained
from tests.referees.platform.cases import MANIFEST
from tests.referees.platform.comparing import Difference
from tests.referees.platform.fixes.pair import ENDS, Pair, Rule, bare, error_of, words_of
from tests.referees.platform.running import Listed

ADDRESS = re.compile(r"https?://[^\s@/\[\]]+(/[!-~]*)?", re.IGNORECASE)
LONGEST_ADDRESS = 2000
CONNECTIONS = frozenset(
    {"server id", "server all_connections_url", "server missing_connections_url", "server connectivity_status"}
)


def dev_tokens(pair: Pair, found: Difference) -> bool:
    """A variable of a server's own is for that server, and for no other."""
    if found.where != "server headers":
        return False
    own = pair.variable(f"BEARER_TOKEN_{str(found.ours['mcp_server_name']).upper()}")
    token = bare(own or pair.variable("BEARER_TOKEN") or "")
    return found.ours["value"] == ({"Authorization": f"Bearer {token}"} if token else None)


def unsendable_tokens(pair: Pair, found: Difference) -> bool:
    """Tokens that no header can hold are refused before they are sent, and not quoted."""
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
    """A server with only a unique name goes by that."""
    named = found.where == "server added"
    return named and found.ours["mcp_server_name"] == found.ours["mcp_server_unique_name"]


def unusable_urls(_pair: Pair, found: Difference) -> bool:
    """Servers whose own address cannot be asked are left out."""
    if found.where != "server left out":
        return False
    url = str(found.sdk["url"])
    return len(url) > LONGEST_ADDRESS or not ADDRESS.fullmatch(url)


def connections(_pair: Pair, found: Difference) -> bool:
    """What the platform says of accounts that are not connected yet."""
    return found.where in CONNECTIONS and found.sdk["value"] is None


def manifest_shape(pair: Pair, found: Difference) -> bool:
    """A manifest that is text is told, and a list is no crash."""
    file = pair.case.files.get(MANIFEST) or pair.case.files.get(f"../{MANIFEST}") or b""
    if found.where != "outcome":
        return False
    if file.startswith(b'"'):
        return isinstance(error_of(pair.ours), ManifestUnreadable) and pair.sdk.outcome == Listed(())
    return file.startswith(b"[") and pair.ours.outcome == Listed(()) and "list indices" in words_of(pair.sdk)


RULES: Mapping[str, Rule] = {
    "dev-tokens": dev_tokens,
    "unsendable-tokens": unsendable_tokens,
    "unique-names": unique_names,
    "unusable-urls": unusable_urls,
    "connections": connections,
    "manifest-shape": manifest_shape,
}
