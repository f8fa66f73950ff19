"""How much of what a command says is kept: the beginning and the end, and how much was between them; no I/O."""


class Kept:
    """Takes bytes as they come, and holds on to no more than `most` of them for long."""

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._size = 0

    def feed(self, data: bytes) -> None:
        self._size += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        # Not each time, or every few bytes of a long output would move all that is kept.
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    @property
    def truncated(self) -> bool:
        return self._size > 2 * self._half

    def text(self) -> str:
        """What was said, as far as it was kept; no zero character is in it, which no database or wire takes."""
        head, tail = bytes(self._head), bytes(self._tail[-self._half :])
        if not self.truncated:
            return _text(head + tail)
        return f"{_text(head)}{_gap(self._size - len(head) - len(tail), 'bytes')}{_text(tail)}"


def shortened(text: str, most: int) -> str:
    """A text's beginning and end, where it is longer than that."""
    half = most // 2
    if len(text) <= 2 * half:
        return text
    return f"{text[:half]}{_gap(len(text) - 2 * half, 'characters')}{text[-half:]}"


def _gap(count: int, unit: str) -> str:
    return f"\n[{count} {unit} were left out here]\n"


def _text(data: bytes) -> str:
    return data.decode(errors="replace").replace("\0", "")
