"""One Letta server: its client, how long we wait for it, and its errors in our words."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from letta_client import AsyncLetta, Timeout

from frontdesk.agents.letta.errors import LETTA_ERRORS, told

ANSWER_SECONDS = 10
# Letta sends a ping every 20 s while it works.
SILENCE_SECONDS = 120
RETRIES = 1


class Server:
    """`client` is for short questions; `streaming` for turns, and never sends anything twice."""

    def __init__(self, base_url: str, token: str | None, headers: Mapping[str, str]) -> None:
        self.base_url = base_url
        self.headers = dict(headers)
        # The client insists on a key; a server without a password ignores it.
        self.client = AsyncLetta(
            base_url=base_url,
            api_key=token or "none",
            timeout=ANSWER_SECONDS,
            max_retries=RETRIES,
            default_headers=self.headers,
        )
        self.streaming = self.client.with_options(max_retries=0, timeout=Timeout(ANSWER_SECONDS, read=SILENCE_SECONDS))

    @contextmanager
    def asking(self, about: str) -> Generator[None]:
        """Turns what goes wrong inside into our errors."""
        try:
            yield
        except LETTA_ERRORS as error:
            raise told(error, self.base_url, about) from error

    async def close(self) -> None:
        await self.client.close()
