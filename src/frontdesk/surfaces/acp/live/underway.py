"""A prompt that is being answered, or waits for its turn."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio


@dataclass(slots=True)
class Underway:
    """`said` is what the person has said since, and the agent has not heard yet."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    begun: bool = False
    steers: bool = False
    said: list[str] = field(default_factory=list[str])

    def cancel(self) -> None:
        self.scope.cancel()

    def heard(self) -> Sequence[str]:
        said, self.said = self.said, []
        return said
