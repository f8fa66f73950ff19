"""A prompt that is being answered, or waits for its turn."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio

from frontdesk.identity.authority import Authority


@dataclass(slots=True)
class Underway:
    """`said` is what the person has said since, and the agent has not heard yet; `authority` on whose word it began."""

    authority: Authority
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    begun: bool = False
    steers: bool = False
    said: list[str] = field(default_factory=list[str])

    def cancel(self) -> None:
        self.scope.cancel()

    def heard(self) -> Sequence[str]:
        said, self.said = self.said, []
        return said
