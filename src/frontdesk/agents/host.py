"""The port to whatever runs the agents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent as its host lists it."""

    id: str
    name: str
    description: str = ""


class AgentHost(Protocol):
    """Finds agents; an agent that is not there is None, a host that does not answer is `Unavailable`."""

    async def find(self, agent_id: str) -> Agent | None: ...

    async def list(self, limit: int) -> Sequence[Agent]: ...

    async def close(self) -> None: ...


async def only_agent(host: AgentHost) -> str | None:
    """The id of the host's agent if it has exactly one."""
    first = await host.list(2)
    return first[0].id if len(first) == 1 else None
