"""What follows from a tool's use: it counts for the next search and keeps its place with the agent."""

from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import anyio
import structlog

from frontdesk.background import Chore
from frontdesk.identity.model import Caller
from frontdesk.tools.learning.service import Learning
from frontdesk.tools.selection.store import HoldingStore

FLUSH_SECONDS = 0.5
DRAIN_SECONDS = 3
KEPT = 10_000
# A tool that is called over and over has its last use noted once in so many seconds.
TOUCH_SECONDS = 10.0
# How much each kind of use says about what a query was after.
CALLED, PICKED, KEPT_BY_NAME = 1.0, 0.8, 0.5

log = structlog.get_logger("frontdesk.tools")
CHORE = Chore(log, "use_not_remembered", "use_not_remembered")


@dataclass(frozen=True, slots=True)
class Use:
    """Who used which tool, how, and when."""

    caller: Caller
    tool_id: str
    weight: float
    at: datetime


class Usage:
    """A call is not kept waiting for this: `note` costs an append, the rest happens in `run`."""

    def __init__(self, learning: Learning, holdings: HoldingStore) -> None:
        self._learning = learning
        self._holdings = holdings
        self._waiting: deque[Use] = deque(maxlen=KEPT)
        self._touched: dict[tuple[str, str], float] = {}

    def note(self, caller: Caller, tool_id: str, weight: float) -> None:
        self._waiting.append(Use(caller, tool_id, weight, datetime.now(UTC)))

    async def run(self) -> None:
        """Write until cancelled, then what is left."""
        await CHORE.written(FLUSH_SECONDS, self.flush, DRAIN_SECONDS)

    async def close(self) -> None:
        """Write what is left, as far as that goes."""
        with anyio.move_on_after(DRAIN_SECONDS, shield=True):
            await self.flush()

    async def flush(self) -> None:
        """Write what waits; what cannot be written is let go, since nothing but convenience depends on it."""
        uses, self._waiting = self._waiting, deque(maxlen=KEPT)
        # Of a tool that is called over and over, once in a while is enough.
        once = {(use.caller.agent_id, use.caller.user_id, use.tool_id, use.weight): use for use in uses}
        for use in once.values():
            await CHORE.attempt(partial(self._remember, use))

    async def _remember(self, use: Use) -> None:
        if use.caller.agent_id is not None:
            await self._touch(use.caller.agent_id, use)
        await self._learning.used(use.caller, use.tool_id, use.weight, use.at)

    async def _touch(self, agent_id: str, use: Use) -> None:
        now, this = anyio.current_time(), (agent_id, use.tool_id)
        if now - self._touched.get(this, -TOUCH_SECONDS) < TOUCH_SECONDS:
            return
        await self._holdings.touch(agent_id, use.tool_id, use.at)
        if len(self._touched) >= KEPT:
            self._touched.clear()
        self._touched[this] = now
