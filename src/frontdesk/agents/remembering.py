"""A memory block as people work on it: what it was before, and a change that takes back nobody else's."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from frontdesk.agents.host import AgentHost, Block, BlockVersion
from frontdesk.errors import Conflict, NotFound


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


def mark_of(value: str) -> str:
    """Tells a value from others: what somebody who changes it had before their eyes."""
    return hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()[:16]


async def find_block(host: AgentHost, agent_id: str, label: str) -> Block:
    found = {block.label: block for block in await host.blocks(agent_id)}
    if label not in found:
        raise NotFound(f"There is no memory block '{label[:100]}'; there are: {', '.join(found) or 'none'}")
    return found[label]


async def rewrite(host: AgentHost, agent_id: str, label: str, value: str, seen: str) -> Block:
    """Give a block another value, unless it is not any more what `seen` marks."""
    if mark_of((await find_block(host, agent_id, label)).value) != seen:
        raise Conflict(
            f"The memory block '{label[:100]}' was changed meanwhile; look at it again and repeat the change"
        )
    return await host.write_block(agent_id, label, value)
