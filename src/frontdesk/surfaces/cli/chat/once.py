"""One turn for a script: the answer on standard output, or every event as a line of JSON."""

import json
import sys
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import asdict

from frontdesk.agents.asking import recorded
from frontdesk.app import App
from frontdesk.errors import Conflict, PendingApproval
from frontdesk.loop.events import Done, Event, Failed, StopReason, TextChunk, ThoughtChunk, ToolArguments, Usage
from frontdesk.surfaces.cli.chat.terminal import STOPS
from frontdesk.surfaces.cli.chat.turns import Thread
from frontdesk.surfaces.cli.plain import plain
from frontdesk.surfaces.cli.running import SURFACE

# After these there is no answer, or only the beginning of one.
UNANSWERED = (StopReason.ERROR, StopReason.REQUIRES_APPROVAL, StopReason.CANCELLED, StopReason.INTERRUPTED)


async def take(app: App, thread: Thread, text: str, *, as_json: bool) -> bool:
    """Take a turn and print it; whether it was answered."""
    answer = Answer()
    show: Callable[[Event], None] = _print_json if as_json else answer.show
    stop, spoke = StopReason.ERROR, False
    try:
        async with aclosing(recorded(app.host, app.journal, SURFACE, thread.says(text))) as events:
            async for event in events:
                show(event)
                if isinstance(event, Done):
                    stop = event.stop
                spoke = spoke or (isinstance(event, TextChunk) and bool(event.text.strip()))
    except PendingApproval as error:
        raise Conflict(f"{_waits(thread)} before you can say something else") from error
    if not as_json:
        answer.end()
    if stop is StopReason.REQUIRES_APPROVAL:
        print(f"frontdesk: {_waits(thread)}", file=sys.stderr)
    elif stop in STOPS:
        print(f"frontdesk: {STOPS[stop]}", file=sys.stderr)
    elif stop is StopReason.END_TURN and not spoke:
        print("frontdesk: The agent said nothing.", file=sys.stderr)
    return spoke and stop not in UNANSWERED


class Answer:
    """Prints the agent's words as they come, those before and after a tool call as paragraphs of their own."""

    def __init__(self) -> None:
        self._fresh = True
        self._paused = False

    def show(self, event: Event) -> None:
        match event:
            case TextChunk(text):
                self._say(plain(text))
            case Failed(trouble, message):
                self.end()
                print(f"frontdesk: the turn failed ({trouble}): {plain(message)}", file=sys.stderr)
            case ThoughtChunk() | ToolArguments() | Usage():
                pass
            case _:
                self._paused = True

    def end(self) -> None:
        if not self._fresh:
            print(flush=True)
            self._fresh = True

    def _say(self, text: str) -> None:
        if self._paused:
            self.end()
            self._paused = False
        print(text, end="", flush=True)
        self._fresh = text.endswith("\n") if text else self._fresh


def _print_json(event: Event) -> None:
    # Escaped to ASCII, so that nothing in it can do anything to a terminal.
    print(json.dumps({"event": named(event), **asdict(event)}, default=str), flush=True)


def named(event: Event) -> str:
    """`TextChunk` → `text_chunk`."""
    name = type(event).__name__
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name).lstrip("_")


def _waits(thread: Thread) -> str:
    which = f" --conversation {thread.conversation_id}" if thread.conversation_id else ""
    return f"a tool call waits for your approval: run `frontdesk chat {thread.agent.id}{which}` in a terminal"
