"""The two ends of an editor's connection without a transport, and an editor's view of a session."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio

from frontdesk.agents.host import HistoryItem
from frontdesk.coding.paths import WorkspaceRoots
from frontdesk.interfaces.acp.event_view import EventView, replay_history
from frontdesk.interfaces.acp.jsonrpc import (
    ConnectionClosed,
    HandleNotification,
    HandleRequest,
    Json,
    RpcPeer,
    RpcRequest,
)
from frontdesk.llm.events import Event
from tests.support.acp.schema import check_update

# A peer, and the other side of a connection without a transport


SECONDS = 10


@dataclass(slots=True)
class Memory:
    """A transport; `deaf` means that the other side stops reading."""

    incoming: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue[bytes | None])
    outgoing: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue[bytes])
    deaf: bool = False

    async def receive(self) -> bytes | None:
        return await self.incoming.get()

    async def send(self, frame: bytes) -> None:
        if self.deaf:
            raise ConnectionClosed("deaf")
        self.outgoing.put_nowait(frame)

    async def close(self) -> None:
        return None


@dataclass(slots=True)
class Talk:
    """What the other side sends and receives."""

    carrier: Memory
    peer: RpcPeer
    bugs: list[Exception]
    ended: anyio.Event = field(default_factory=anyio.Event)
    running: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    def say(self, *frames: dict[str, Any] | bytes) -> None:
        for frame in frames:
            self.carrier.incoming.put_nowait(frame if isinstance(frame, bytes) else json.dumps(frame).encode())

    def leave(self) -> None:
        self.carrier.incoming.put_nowait(None)

    async def hear(self) -> dict[str, Any]:
        frame = json.loads(await self.carrier.outgoing.get())
        assert frame.pop("jsonrpc") == "2.0"
        return frame

    async def left_alone(self) -> None:
        """Everything that was sent before has been read, and nothing was answered to it."""
        self.say(call("last", "echo"))
        assert await self.hear() == {"id": "last", "result": {}}

    async def _run(self) -> None:
        with self.running:
            await self.peer.run()
        self.ended.set()


def call(number: object, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def notice(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def reply(number: object, **outcome: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, **outcome}


async def echo(request: RpcRequest) -> Json:
    return request.params


def ignore(_method: str, _params: Json) -> None:
    return None


@asynccontextmanager
async def talking(
    answer: HandleRequest = echo, hear: HandleNotification = ignore, **options: float
) -> AsyncGenerator[Talk]:
    """A running peer; the other side leaves at the end, and the peer must end too."""
    carrier, bugs = Memory(), list[Exception]()
    talk = Talk(carrier, RpcPeer(carrier, answer, hear, bugs.append, **options), bugs)
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk._run)
            yield talk
            talk.leave()


# An editor's view of a session: reads updates, and checks them against the protocol


ROOTS = WorkspaceRoots(Path("/code/project"), (Path("/code/other"),))
AT = datetime(2026, 1, 1, tzinfo=UTC)
ENDED = ("completed", "failed")


@dataclass(slots=True)
class Board:
    """`calls` in their present state, by id, and `messages` with their present text: the sender and the text."""

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
    """An editor's view after these events."""
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
    """The text of a call."""
    return [part["content"]["text"] for part in call["content"] if part["type"] == "content"]
