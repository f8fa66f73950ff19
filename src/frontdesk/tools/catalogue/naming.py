"""What servers are called here, whatever they are called elsewhere: as ids and models take it, and no two alike."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import count

from frontdesk.tools.model import HOST_SERVER

LONGEST = 30
DIGEST = 10
SHOWN = LONGEST - DIGEST - 1
DIGESTED = re.compile(rf"-[0-9a-f]{{{DIGEST}}}$")


def server_name(said: str) -> str:
    """A name as ids and models take it: `mcp_Mail Tools` is `mcp-Mail-Tools`."""
    return re.sub(r"[^A-Za-z0-9]+", "-", said).strip("-")[:LONGEST].strip("-")


def apart(said: Sequence[tuple[str, str]]) -> Sequence[str]:
    """A name for each of these (what it is called, what else tells it from others).

    Where several would be called the same, each gets a digest. Were one of them to keep the name, it could be one that
    came later, and got the calls that were meant for the other.
    """
    plain = [server_name(name) for name, _ in said]
    crowd = Counter(plain)
    found: dict[str, None] = {}
    for (name, other), short in zip(said, plain, strict=True):
        found[short if crowd[short] == 1 and _fit(short) else _digested(short, (name, other), found)] = None
    return list(found)


def _fit(name: str) -> bool:
    # What looks like a digest must be one, or it could be had for the asking.
    return bool(name) and name != HOST_SERVER and DIGESTED.search(name) is None


def _digested(short: str, said: tuple[str, str], taken: Collection[str]) -> str:
    shown = short[:SHOWN].strip("-") or "server"
    digests = (hashlib.sha256(json.dumps([*said, salt]).encode()).hexdigest()[:DIGEST] for salt in count())
    return next(name for digest in digests if (name := f"{shown}-{digest}") not in taken)
