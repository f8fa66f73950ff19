"""An editor's view of a session: takes updates in, and holds them against the protocol."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from frontdesk.agents.host import HistoryItem
from frontdesk.coding.paths import WorkspaceRoots
from frontdesk.interfaces.acp.event_view import EventView, replay_history
from frontdesk.interfaces.acp.jsonrpc import Json
from frontdesk.llm.events import Event
from tests.support.acp.schema import check_update

ROOTS = WorkspaceRoots(Path("/code/project"), (Path("/code/other"),))
AT = datetime(2026, 1, 1, tzinfo=UTC)
ENDED = ("completed", "failed")


@dataclass(slots=True)
class Board:
    """`calls` as they stand now, by id, and `messages` as they read now: who said them, and what."""

    updates: list[Json] = field(default_factory=list[Json])
    calls: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    messages: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    async def take(self, update: Json) -> None:
        check_update(update)
        self.updates.append(update)
        kind = update["sessionUpdate"]
        known = {key: value for key, value in update.items() if key not in ("sessionUpdate", "toolCallId")}
        if kind == "tool_call":
            assert update["toolCallId"] not in self.calls, "an id that another call has"
            self.calls[update["toolCallId"]] = known
        elif kind == "tool_call_update":
            assert self.calls[update["toolCallId"]]["status"] not in ENDED, "a call that has ended goes on"
            self.calls[update["toolCallId"]] |= known
        elif "messageId" in update:
            who, text = self.messages.get(update["messageId"], (kind, ""))
            assert who == kind, "a message of two speakers"
            content = update["content"]
            self.messages[update["messageId"]] = (kind, text + content.get("text", f"<{content['type']}>"))

    def kinds(self) -> list[str]:
        return [update["sessionUpdate"] for update in self.updates]

    def open(self) -> list[str]:
        return [call_id for call_id, call in self.calls.items() if call["status"] not in ENDED]

    def screen(self, **more: Any) -> EventView:
        return EventView(self.take, ROOTS, lambda label: Path("/data/memory") / f"{label}.md", **more)


async def shown(*events: Event, **more: Any) -> Board:
    """What an editor has after these events."""
    board = Board()
    screen = board.screen(**more)
    for event in events:
        await screen.show(event)
    return board


def said(turn_id: str, *events: Event) -> Sequence[HistoryItem]:
    return [HistoryItem(f"{turn_id}.{number}", turn_id, AT, event) for number, event in enumerate(events)]


async def replayed(past: Sequence[HistoryItem]) -> tuple[Board, dict[str, str]]:
    board = Board()
    return board, dict(await replay_history(past, board.screen()))


def texts(call: dict[str, Any]) -> list[str]:
    """What a call says in plain words."""
    return [part["content"]["text"] for part in call["content"] if part["type"] == "content"]
