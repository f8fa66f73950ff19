"""The echo agent once more, on our own wire and screen: what an update costs where no model has to be waited for."""

from collections.abc import AsyncGenerator
from pathlib import Path
from uuid import uuid4

import anyio

from frontdesk.loop.events import Event, Started, TextChunk
from frontdesk.loop.script import pieces
from frontdesk.surfaces.acp.convert.screen import Screen
from frontdesk.surfaces.acp.editor.model import Editor
from frontdesk.surfaces.acp.greeting import Capabilities, Offer, greet
from frontdesk.surfaces.acp.wire.model import Json, Request
from frontdesk.surfaces.acp.wire.peer import Peer
from frontdesk.surfaces.acp.wire.stdio import Stdio
from frontdesk.workspace.roots import Roots


class Plain:
    """Answers what the bench asks."""

    def __init__(self) -> None:
        self.peer = Peer(Stdio.open(), self.answer, lambda _method, _params: None, _raise)
        self._editor = Editor(self.peer, Capabilities())

    async def answer(self, request: Request) -> Json:
        match request.method:
            case "initialize":
                return greet(request.params, Offer())
            case "session/new":
                return {"sessionId": uuid4().hex}
            case _:
                return await self._prompt(request.params)

    async def _prompt(self, params: Json) -> Json:
        async def send(update: Json) -> None:
            await self._editor.show(params["sessionId"], update)

        screen = Screen(send, Roots.of(Path.cwd()), Path)
        async for event in _said("".join(block["text"] for block in params["prompt"])):
            await screen.show(event)
        return {"stopReason": "end_turn"}


async def _said(text: str) -> AsyncGenerator[Event]:
    yield Started("turn", "conversation")
    for word in pieces(text):
        yield TextChunk(word)


def _raise(error: Exception) -> None:
    raise error


async def main() -> None:
    await Plain().peer.run()


if __name__ == "__main__":
    anyio.run(main)
