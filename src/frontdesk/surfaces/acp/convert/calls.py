"""The tool calls that an editor has been shown, each under an id that no other call of the session has."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from frontdesk.surfaces.acp.convert import updates
from frontdesk.surfaces.acp.convert.updates import Status
from frontdesk.surfaces.acp.wire.model import Json
from frontdesk.workspace.coding.model import InTerminal
from frontdesk.workspace.permissions.model import Diff, Place


@dataclass(slots=True)
class Call:
    """A call as far as it is shown; without a status it is not shown yet. `waits`: for somebody's word."""

    sent_id: str
    status: Status | None = None
    waits: bool = False
    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    places: dict[str, Place] = field(default_factory=dict[str, Place])
    diffs: dict[str, Diff] = field(default_factory=dict[str, Diff])
    terminals: list[str] = field(default_factory=list[str])
    shown: anyio.Event = field(default_factory=anyio.Event)

    @property
    def has_ended(self) -> bool:
        return self.status in ("completed", "failed")

    @property
    def is_open(self) -> bool:
        return self.status is not None and not self.has_ended

    def put(self, part: Diff | Place | InTerminal) -> None:
        """Add something to be seen; what was shown of the same file before is replaced."""
        match part:
            case Place():
                self.places[str(part.path)] = part
            case Diff():
                self.diffs[str(part.path)] = part
            case InTerminal(terminal_id) if terminal_id not in self.terminals:
                self.terminals.append(terminal_id)
            case InTerminal():
                pass

    def locate(self, places: Sequence[Place]) -> None:
        """Add the files that the arguments name; what the tool itself showed stands."""
        for place in places:
            self.places.setdefault(str(place.path), place)

    def content(self, *more: Json) -> Sequence[Json]:
        """Everything to be seen in the call: an update replaces all that was there."""
        diffs = [updates.diff(one) for one in self.diffs.values()]
        return [*diffs, *(updates.terminal(one) for one in self.terminals), *more]

    def locations(self) -> Sequence[Json]:
        return [updates.location(one) for one in self.places.values()]


class Calls:
    """The newest call under each of the host's ids: a model may use one again once its call has ended."""

    def __init__(self, waiting: Mapping[str, str]) -> None:
        self._newest = {call_id: Call(sent_id, "pending", waits=True) for call_id, sent_id in waiting.items()}
        self._all = list(self._newest.values())
        self._used = set(waiting.values())
        for call in self._all:
            call.shown.set()

    def find(self, call_id: str) -> Call | None:
        return self._newest.get(call_id)

    def reserve(self, turn_id: str, call_id: str) -> Call:
        """The newest call of this id, also one that is still to be shown."""
        return self._newest.get(call_id) or self._add(turn_id, call_id)

    def take(self, turn_id: str, call_id: str) -> Call:
        """The call under way of this id, or a new one."""
        found = self._newest.get(call_id)
        return self._add(turn_id, call_id) if found is None or found.has_ended else found

    def unused(self, wanted: str) -> str:
        """This id, or one like it, if it is taken; the same calls in the same order are always called the same."""
        found, number = wanted, 1
        while found in self._used:
            number += 1
            found = f"{wanted}-{number}"
        self._used.add(found)
        return found

    def open(self) -> Iterator[Call]:
        return (call for call in self._all if call.is_open)

    def waiting(self) -> Mapping[str, str]:
        """The ids of those that wait for somebody's word, and under which they are shown."""
        return {call_id: call.sent_id for call_id, call in self._newest.items() if call.is_open and call.waits}

    def _add(self, turn_id: str, call_id: str) -> Call:
        call = self._newest[call_id] = Call(self.unused(f"{turn_id}-{call_id}"))
        self._all.append(call)
        return call
