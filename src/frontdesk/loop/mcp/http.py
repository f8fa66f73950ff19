"""What an MCP server is asked through: one exchange at a time, by our own client or by the library's."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

CONNECT_SECONDS = 5.0


class Failure(Exception):
    """An exchange came to nothing; the text is one word for it, and never quotes what was sent."""


class Answer(Protocol):
    """An answer whose head is here; header names are in lower case."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def complete(self) -> bool:
        """Whether nothing of it is still under way, as far as is known."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes in; raises `Failure` where it breaks off."""
        ...


class Http(Protocol):
    """Carries exchanges: raises `Failure`, follows no redirect, keeps no cookie, sends nothing twice."""

    @property
    def closed(self) -> bool: ...

    def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> AbstractAsyncContextManager[Answer]: ...

    async def close(self) -> None: ...
