"""What is remembered of past searches: vectors and tools, never a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from frontdesk.identity.model import Caller
from frontdesk.tools.packing import unpacked

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Use:
    """A tool was of use for a query. `weight` grows when it was so again."""

    tool_id: str
    query_digest: str
    vector: bytes
    weight: float
    at: datetime


@dataclass(frozen=True, slots=True)
class Uses:
    """A tenant's uses, a row each: which tool, the query's vector, how much it counts, and when (Unix seconds)."""

    tools: Sequence[str]
    vectors: NDArray[np.float32]
    weights: NDArray[np.float32]
    at: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.tools)


@dataclass(frozen=True, slots=True)
class PastSearch:
    """A search of the last hour: whose it was, and which tools it offered."""

    id: str
    tenant: str
    caller: str
    query_digest: str
    vector: bytes
    offered: Sequence[str]
    at: datetime


def tenant_of(caller: Caller) -> str:
    """Among whom uses are shared: one person, else one agent, else this desk."""
    return f"user:{caller.user_id}" if caller.user_id else f"agent:{caller.agent_id}" if caller.agent_id else LOCAL


def key_of(caller: Caller) -> str:
    """Whose searches a use is looked for among: this agent, working for this person."""
    return f"{caller.agent_id or ''}/{caller.user_id or ''}"


def uses_of(found: Sequence[Use]) -> Uses:
    """The rows as arrays."""
    return Uses(
        tuple(use.tool_id for use in found),
        unpacked([use.vector for use in found]),
        np.array([use.weight for use in found], np.float32),
        np.array([use.at.timestamp() for use in found], np.float64),
    )
