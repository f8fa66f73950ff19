"""One Letta server: its client, how long we wait for it, and its errors in our words."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import anyio
from letta_client import AsyncLetta, Timeout

from frontdesk.agents.letta.errors import LETTA_ERRORS, told
from frontdesk.identity import outbound
from frontdesk.identity.model import Caller

ANSWER_SECONDS = 10
# Letta sends a ping every 20 s while it works.
SILENCE_SECONDS = 120
RETRIES = 1
OWNERS = 10_000
# Letta lists nothing for a conversation that is gone, and does not say so: once in a while it is asked for again.
OWNER_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Server:
    """`client` is for short questions; `streaming` for turns, and never sends anything twice."""

    base_url: str
    client: AsyncLetta
    streaming: AsyncLetta
    _owners: dict[str, tuple[str, float]] = field(default_factory=dict[str, tuple[str, float]])

    def acting(self, caller: Caller) -> "Server":
        """The same server, told with each request on whose behalf it is asked."""
        said = outbound.headers(caller)
        client, streaming = (one.with_options(default_headers=said) for one in (self.client, self.streaming))
        return replace(self, client=client, streaming=streaming)

    async def owner(self, conversation_id: str) -> str:
        """The agent that a conversation belongs to, as it did a short while ago."""
        agent_id, until = self._owners.get(conversation_id, ("", 0.0))
        if until <= anyio.current_time():
            agent_id = (await self.client.conversations.retrieve(conversation_id)).agent_id
            self.remember(conversation_id, agent_id)
        return agent_id

    def remember(self, conversation_id: str, agent_id: str) -> None:
        self._owners.pop(conversation_id, None)
        self._owners[conversation_id] = agent_id, anyio.current_time() + OWNER_SECONDS
        if len(self._owners) > OWNERS:
            del self._owners[next(iter(self._owners))]

    def drop(self, conversation_id: str) -> None:
        """A conversation is gone."""
        self._owners.pop(conversation_id, None)

    def forget(self, agent_id: str) -> None:
        """An agent's conversations are gone with it."""
        for conversation_id in [one for one, (owner, _) in self._owners.items() if owner == agent_id]:
            del self._owners[conversation_id]

    @contextmanager
    def asking(self, about: str) -> Generator[None]:
        """Turns what goes wrong inside into our errors."""
        try:
            yield
        except LETTA_ERRORS as error:
            raise told(error, self.base_url, about) from error

    async def close(self) -> None:
        await self.client.close()


def open_server(base_url: str, token: str | None) -> Server:
    # The client insists on a key; a server without a password ignores it.
    client = AsyncLetta(
        base_url=base_url,
        api_key=token or "none",
        timeout=ANSWER_SECONDS,
        max_retries=RETRIES,
        default_headers=outbound.headers(),
    )
    streaming = client.with_options(max_retries=0, timeout=Timeout(ANSWER_SECONDS, read=SILENCE_SECONDS))
    return Server(base_url, client, streaming)
