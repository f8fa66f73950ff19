"""Lines out of a stream of bytes, none longer than a limit; no I/O."""

from dataclasses import dataclass

SHOWN = 512


@dataclass(frozen=True, slots=True)
class Overlong:
    """A line that was too long to keep: how it began and how it ended."""

    head: bytes
    tail: bytes


class Lines:
    """Takes bytes as they come in."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""
        self._tail = b""

    def feed(self, data: bytes) -> list[bytes | Overlong]:
        """The lines that this completes, without their ends; empty ones are none."""
        first, *others = data.split(b"\n")
        self._add(first)
        found: list[bytes | Overlong] = []
        for piece in others:
            found += self._line()
            self._add(piece)
        return found

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._limit:
            self._parts.append(piece)
            return
        if self._parts:
            kept = b"".join(self._parts)
            self._head, self._tail, self._parts = kept[:SHOWN], kept[-SHOWN:], []
        self._head = (self._head + piece)[:SHOWN]
        self._tail = (self._tail + piece[-SHOWN:])[-SHOWN:]

    def _line(self) -> list[bytes | Overlong]:
        overlong = self._size > self._limit
        line = b"".join(self._parts).strip()
        head, tail = self._head, self._tail
        self._parts, self._size, self._head, self._tail = [], 0, b"", b""
        if overlong:
            return [Overlong(head, tail)]
        return [line] if line else []
