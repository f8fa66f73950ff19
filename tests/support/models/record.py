"""The scripted model server as a test sees it: its address, the requests it had, and who went away too soon."""

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KEPT_REQUESTS = 1000
WAIT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Seen:
    """One request: its path, its headers by their lower-case names, and its body."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


@dataclass(slots=True)
class ModelServer:
    """A running server; `disconnects` counts the clients that left before their answer was complete."""

    url: str
    seen: deque[Seen] = field(default_factory=lambda: deque[Seen](maxlen=KEPT_REQUESTS))
    disconnects: int = 0
    _left: threading.Condition = field(default_factory=threading.Condition)

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        return self.url

    def note_disconnect(self) -> None:
        with self._left:
            self.disconnects += 1
            self._left.notify_all()

    def wait_for_disconnects(self, count: int, seconds: float = WAIT_SECONDS) -> bool:
        """Whether that many clients have left, as soon as they have; blocks the calling thread."""
        with self._left:
            return self._left.wait_for(lambda: self.disconnects >= count, seconds)
