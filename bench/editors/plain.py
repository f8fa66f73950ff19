"""The echo agent on our own protocol code: what an update costs where no model causes a wait."""

from collections.abc import AsyncGenerator
from pathlib import Path
from uuid import uuid4

import anyio

from frontdesk.coding.paths import WorkspaceRoots
from frontdesk.interfaces.acp.editor import Editor
from frontdesk.interfaces.acp.event_view import EventView
from frontdesk.interfaces.acp.handshake import AgentCapabilities, EditorCapabilities, initialize_response
from frontdesk.interfaces.acp.jsonrpc import Json, RpcPeer, RpcRequest
from frontdesk.interfaces.acp.stdio import StdioTransport
from frontdesk.llm.events import Event, Started, TextChunk
from frontdesk.llm.script import split_words


class Plain:
    """Answers the requests of the bench."""

    def __init__(self) -> None:
        self.peer = RpcPeer(StdioTransport.open(), self.answer, lambda _method, _params: None, _raise)
        self._editor = Editor(self.peer, EditorCapabilities())

    async def answer(self, request: RpcRequest) -> Json:
        match request.method:
            case "initialize":
                return initialize_response(request.params, AgentCapabilities())
            case "session/new":
                return {"sessionId": uuid4().hex}
            case _:
                return await self._prompt(request.params)

    async def _prompt(self, params: Json) -> Json:
        async def send(update: Json) -> None:
            await self._editor.show(params["sessionId"], update)

        screen = EventView(send, WorkspaceRoots.from_folders(Path.cwd()), Path)
        async for event in _said("".join(block["text"] for block in params["prompt"])):
            await screen.show(event)
        return {"stopReason": "end_turn"}


async def _said(text: str) -> AsyncGenerator[Event]:
    yield Started("turn", "conversation")
    for word in split_words(text):
        yield TextChunk(word)


def _raise(error: Exception) -> None:
    raise error


async def main() -> None:
    await Plain().peer.run()


if __name__ == "__main__":
    anyio.run(main)
