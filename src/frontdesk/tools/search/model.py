"""The words of search: what is indexed, what is asked, and what is found."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from frontdesk.tools.model import Kind

LIMIT = 10


@dataclass(frozen=True, slots=True)
class Doc:
    """A tool as search sees it. `parameter_texts` is what the schema says about the parameters, run together."""

    id: str
    server: str
    name: str
    description: str
    parameters: tuple[str, ...] = ()
    kind: Kind = Kind.MCP
    parameter_texts: str = ""

    @property
    def fields(self) -> tuple[str, str, str, str]:
        """The texts that are weighed apart, in the order of `bm25.FIELDS`."""
        return self.name, self.server, self.description, f"{' '.join(self.parameters)} {self.parameter_texts}"


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for, and among what.

    `vectors`: a row for each of `clauses(text)`, the whole text first; None searches by words alone. `past`: how well a
    tool answered like queries before, from 0 to 1 by tool id.
    """

    text: str
    vectors: NDArray[np.float32] | None = None
    limit: int = LIMIT
    min_score: float = 0.0
    allowed: Callable[[str], bool] | None = None
    servers: frozenset[str] | None = None
    kinds: frozenset[Kind] | None = None
    past: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that was found, and why: the words it shares, how near it is in meaning, what it was good for before."""

    id: str
    score: float
    words: tuple[str, ...] = ()
    meaning: float = 0.0
    past_use: float = 0.0
    exact: bool = False
