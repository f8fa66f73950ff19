"""The names under which tools of MCP servers go: such as every model API takes, and no two alike."""

import hashlib
import json
import re
from collections.abc import Mapping

SEPARATOR = "__"
TAKEN_BY_APIS = re.compile(r"[a-zA-Z0-9_-]{1,64}")
OTHER = re.compile(r"[^a-zA-Z0-9_-]")
SHOWN = 53
DIGEST = 10


def api_name(server: str, tool: str, taken: Mapping[str, object]) -> str:
    """`<server>__<tool>` where a model API takes that, else a readable part of it with a digest of the whole."""
    name, salt = f"{server}{SEPARATOR}{tool}", 0
    # The first separator must be ours, or `a` + `b__c` and `a__b` + `c` would be one name.
    clear = SEPARATOR not in server and not server.endswith("_") and TAKEN_BY_APIS.fullmatch(name) is not None
    found = name if clear else _digested(server, tool, salt)
    while found in taken:
        salt += 1
        found = _digested(server, tool, salt)
    return found


def _digested(server: str, tool: str, salt: int) -> str:
    digest = hashlib.sha256(json.dumps([server, tool, salt]).encode()).hexdigest()[:DIGEST]
    return f"{OTHER.sub('_', f'{server}{SEPARATOR}{tool}')[:SHOWN]}_{digest}"
