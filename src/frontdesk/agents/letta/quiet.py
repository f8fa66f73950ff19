"""Waits for what an agent is doing, whoever began it, to come to an end."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat

import anyio
from letta_client.types.agents import Run

from frontdesk.agents.letta.server import Server
from frontdesk.errors import Busy

QUIET_SECONDS = 300
LOOKS = (0.2, 0.2, 0.3, 0.5, 1.0)
RUNS = 100
# A server that died left its runs behind as running, for ever.
STALE = timedelta(minutes=15)


async def until_quiet(server: Server, agent_id: str, looks: Sequence[float] = (0.0,)) -> str | None:
    """The conversation in which the agent was at work, once that work has ended; None is its own first one.

    Runs that begin while we wait are not waited for: one after the other, they might go on for ever. With more than
    one of `looks`, which are pauses, also a run is found that has only just been asked for.
    """
    under_way = await _seen(server, agent_id, looks)
    if not under_way:
        return None
    waited_for = {run.id for run in under_way}
    try:
        with anyio.fail_after(QUIET_SECONDS):
            for pause in chain(LOOKS, repeat(LOOKS[-1])):
                if not waited_for & {run.id for run in await _active(server, agent_id)}:
                    break
                await anyio.sleep(pause)
    except TimeoutError as error:
        raise Busy(f"Agent '{agent_id}' has been at work for {QUIET_SECONDS} s; cancel that or try later") from error
    return under_way[-1].conversation_id


async def _seen(server: Server, agent_id: str, looks: Sequence[float]) -> list[Run]:
    for pause in looks:
        await anyio.sleep(pause)
        if under_way := await _active(server, agent_id):
            return under_way
    return []


async def _active(server: Server, agent_id: str) -> list[Run]:
    with server.asking(f"agent '{agent_id}'"):
        page = await server.client.runs.list(agent_id=agent_id, active=True, order="asc", limit=RUNS)
    return [run for run in page.items if not _is_stale(run)]


def _is_stale(run: Run) -> bool:
    if run.created_at is None:
        return False
    made = run.created_at if run.created_at.tzinfo else run.created_at.replace(tzinfo=UTC)
    return datetime.now(UTC) - made > STALE
