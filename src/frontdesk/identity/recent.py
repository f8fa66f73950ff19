"""What was looked up a moment ago: so much of it, for so long."""

import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Recent(Generic[K, T]):
    """Values by key, each good for `seconds`."""

    def __init__(self, seconds: float, size: int) -> None:
        self._seconds = seconds
        self._size = size
        self._held: dict[K, tuple[float, T]] = {}
        self._dropped = 0

    async def find(self, key: K, look: Callable[[], Awaitable[T]]) -> T:
        """The value that is held, or the one that `look` finds, which is held from now on."""
        now = time.monotonic()
        held = self._held.get(key)
        if held is not None and now - held[0] < self._seconds:
            return held[1]
        dropped = self._dropped
        value = await look()
        # Something was dropped meanwhile: this may be what it was before, and must not come back.
        if dropped == self._dropped:
            if len(self._held) >= self._size:
                self._held.clear()
            self._held[key] = (now, value)
        return value

    def drop(self, key: K) -> None:
        self._dropped += 1
        self._held.pop(key, None)

    def clear(self) -> None:
        self._dropped += 1
        self._held.clear()
