"""The stand-in as a whole: what it serves, what it keeps in memory, and what happens by chance."""

import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from frontdesk.platform.local.answering import States
from frontdesk.platform.local.checking import TokenMode
from frontdesk.platform.local.faults import Faults
from frontdesk.platform.local.issuing import Mint
from frontdesk.platform.local.seen import MOST_REQUESTS, Seen
from frontdesk.platform.local.watching import Watched

MOST_CHATS = 200


@dataclass(slots=True)
class StandIn:
    """One local platform; nothing of it outlives the process."""

    manifest: Watched
    mode: TokenMode = TokenMode.CLAIMS
    luck: random.Random = field(default_factory=random.Random)
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    clock: Callable[[], float] = time.time
    mint: Mint = field(default_factory=Mint)
    faults: Faults = field(default_factory=Faults)
    states: States = field(default_factory=States)
    seen: deque[Seen] = field(default_factory=lambda: deque[Seen](maxlen=MOST_REQUESTS))
    chats: deque[Mapping[str, Any]] = field(default_factory=lambda: deque[Mapping[str, Any]](maxlen=MOST_CHATS))

    @classmethod
    def of(cls, manifest: Path, mode: TokenMode = TokenMode.CLAIMS, seed: int | None = None) -> "StandIn":
        """The stand-in for a manifest, or `ManifestUnreadable`; with a seed, chance is the same each time."""
        # Chance for tests, and nothing secret.
        return cls(Watched(manifest), mode, random.Random(seed))  # noqa: S311
