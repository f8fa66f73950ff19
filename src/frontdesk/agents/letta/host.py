"""The Letta host: agents on a Letta server, found over its REST API."""

from collections.abc import Sequence

from letta_client import APIError, AsyncLetta, NotFoundError, UnprocessableEntityError
from letta_client.types import AgentState

from frontdesk.agents.host import Agent
from frontdesk.errors import Unavailable

TIMEOUT_SECONDS = 10
RETRIES = 1


class LettaHost:
    """An `AgentHost` in front of a Letta V1 server or Letta Cloud."""

    def __init__(self, base_url: str, token: str | None, headers: dict[str, str]) -> None:
        self._base_url = base_url
        # The client insists on a key; a server without a password ignores it.
        self._client = AsyncLetta(
            base_url=base_url,
            api_key=token or "none",
            timeout=TIMEOUT_SECONDS,
            max_retries=RETRIES,
            default_headers=headers,
        )

    async def find(self, agent_id: str) -> Agent | None:
        try:
            return _agent(await self._client.agents.retrieve(agent_id))
        except (NotFoundError, UnprocessableEntityError):
            # The latter is what it says of an id that does not even look like one of its own.
            return None
        except APIError as error:
            raise self._unavailable(error) from error

    async def list(self, limit: int) -> Sequence[Agent]:
        # Ascending always: the default order repeats rows across pages.
        try:
            page = await self._client.agents.list(limit=limit, order="asc")
        except APIError as error:
            raise self._unavailable(error) from error
        return [_agent(state) for state in page.items]

    async def close(self) -> None:
        await self._client.close()

    def _unavailable(self, error: APIError) -> Unavailable:
        return Unavailable(
            f"The Letta server at {self._base_url} does not answer ({type(error).__name__}); check LETTA_BASE_URL "
            "and LETTA_API_KEY or LETTA_SERVER_PASSWORD"
        )


def _agent(state: AgentState) -> Agent:
    return Agent(state.id, state.name, state.description or "")
