"""The room that an agent has for tools, and who gives way when there is none left."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Self

from frontdesk.tools.selection.model import Held, Limits, Role

LONG_AGO = datetime.min.replace(tzinfo=UTC)


def last_used(tool: Held) -> datetime:
    """When a tool was last used or, since then, attached; what nobody remembers is long ago."""
    return max(tool.used_at or LONG_AGO, tool.attached_at or LONG_AGO)


def share_of(rate: float, count: int) -> int:
    """So many of `count`, rounded down but for what floating point takes away."""
    return math.floor(rate * count + 1e-9)


@dataclass(slots=True)
class Room:
    """Counts as they stand once all that was decided is done. `loose` may go, in this order; `gone` goes."""

    limits: Limits
    total: int
    mcp: int
    floor: int
    loose: list[Held]
    gone: list[Held] = field(default_factory=list[Held])
    crowded: bool = False

    @classmethod
    def of(cls, held: Sequence[Held], limits: Limits, loose: Sequence[Held]) -> Self:
        mcp = sum(tool.role is Role.MCP for tool in held)
        order = sorted(loose, key=lambda tool: (last_used(tool), tool.value, tool.name))
        # Where there are fewer already, none may go without another coming in its place.
        return cls(limits, len(held), mcp, min(mcp, limits.min_mcp, limits.max_mcp), order)

    def make(self, role: Role) -> bool:
        """Take one more in, and let go for it what must go; False, with nothing changed, where that is not enough."""
        before = (self.total, self.mcp, list(self.loose), list(self.gone), self.crowded)
        self.total += 1
        self.mcp += role is Role.MCP
        while (full := role is Role.MCP and self.mcp > self.limits.max_mcp) or self.total > self.limits.max_total:
            self.crowded = self.crowded or not full
            if not self._let_go(only_mcp=full):
                self.total, self.mcp, self.loose, self.gone, self.crowded = before
                return False
        return True

    def make_more(self, share: float) -> None:
        """Where some must go, let this share of all that may go at once, so that the next finds need no change."""
        if not self.gone:
            return
        could = [tool for tool in (*self.gone, *self.loose) if self.crowded or tool.role is Role.MCP]
        while len(self.gone) < share_of(share, len(could)) and self._let_go(only_mcp=not self.crowded):
            pass

    def why_not(self, role: Role) -> str:
        """Which limit stands in the way, in words."""
        if role is Role.MCP and self.mcp >= self.limits.max_mcp:
            return f"{self.limits.max_mcp} tools of MCP servers are the most, and none of those it has may go"
        return f"{self.limits.max_total} tools are the most, and none of those it has may go"

    def _let_go(self, *, only_mcp: bool) -> bool:
        for index, tool in enumerate(self.loose):
            mcp = tool.role is Role.MCP
            if (mcp and self.mcp > self.floor) or (not mcp and not only_mcp):
                self.total -= 1
                self.mcp -= mcp
                self.gone.append(self.loose.pop(index))
                return True
        return False
