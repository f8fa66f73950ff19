"""Outages on purpose: what a part of the platform does instead of its work, and how often."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

DISCOVERY = "discovery"
CHAT = "chat"
SERVER = "server:"


@dataclass(frozen=True, slots=True)
class Fault:
    """An answer instead of the real one, or with `close` none at all; `times` None: until it is removed."""

    status: int = 503
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay_ms: int = 0
    times: int | None = None
    close: bool = False


class Faults:
    """The outages that there are, by the part they are of."""

    def __init__(self) -> None:
        self._of: dict[str, Fault] = {}

    def put(self, part: str, fault: Fault | None) -> None:
        """Replace the fault of a part; None removes it."""
        if fault is None:
            self._of.pop(part, None)
        else:
            self._of[part] = fault

    def clear(self) -> None:
        self._of.clear()

    def take(self, part: str) -> Fault | None:
        """What a request to this part meets; one of its times is then used up."""
        fault = self._of.get(part)
        if fault is not None and fault.times is not None:
            self.put(part, replace(fault, times=fault.times - 1) if fault.times > 1 else None)
        return fault

    @property
    def present(self) -> Mapping[str, Fault]:
        return dict(self._of)
