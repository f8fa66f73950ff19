"""A memory block as people look at it: what it is, and what it was before."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from frontdesk.agents.host import AgentHost, Block, BlockVersion, Whose
from frontdesk.errors import NotFound


@dataclass(frozen=True, slots=True)
class Change:
    """A block's value became another."""

    at: datetime
    before: str
    after: str


def changes(now: str, versions: Sequence[BlockVersion]) -> Sequence[Change]:
    """What was changed, the newest first, from the present value and those before it."""
    after = [now, *(version.value for version in versions)]
    return [Change(version.until, version.value, later) for version, later in zip(versions, after, strict=False)]


async def find_block(host: AgentHost, agent_id: str, label: str, user_id: Whose = None) -> Block:
    found = {block.label: block for block in await host.blocks(agent_id, user_id)}
    if label not in found:
        raise NotFound(f"There is no memory block '{label[:100]}'; there are: {', '.join(found) or 'none'}")
    return found[label]
