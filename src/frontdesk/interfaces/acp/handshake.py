"""Answers `initialize` immediately, and opens Frontdesk for the editor in the background."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import anyio
from anyio.abc import TaskGroup

from frontdesk import __version__
from frontdesk.errors import FrontdeskError
from frontdesk.interfaces.acp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    FrameTransport,
    Json,
    RpcError,
    RpcPeer,
    RpcRequest,
)
from frontdesk.llm.access import ModelAccess, accepted_media
from frontdesk.settings import Settings

if TYPE_CHECKING:
    from frontdesk.interfaces.acp.connection import EditorConnection

PROTOCOL_VERSION = 1
AUTH_METHOD = "frontdesk"


@dataclass(frozen=True, slots=True)
class EditorCapabilities:
    """What an editor can do for its agent."""

    reads: bool = False
    writes: bool = False
    terminals: bool = False
    asks_forms: bool = False
    notices: bool = False
    compaction: bool = False


@dataclass(frozen=True, slots=True)
class AgentCapabilities:
    """What this installation offers to editors, by its settings."""

    images: bool = False
    sounds: bool = False
    steers: bool = False


def editor_capabilities(params: Json) -> EditorCapabilities:
    """Read the editor's capabilities; a field of another type than expected counts as missing."""
    given = _object_or_empty(params.get("clientCapabilities"))
    files, session = _object_or_empty(given.get("fs")), _object_or_empty(given.get("session"))
    return EditorCapabilities(
        reads=files.get("readTextFile") is True,
        writes=files.get("writeTextFile") is True,
        terminals=given.get("terminal") is True,
        asks_forms=isinstance(_object_or_empty(given.get("elicitation")).get("form"), dict),
        notices=isinstance(session.get("notices"), dict),
        compaction=isinstance(session.get("compaction"), dict),
    )


def initialize_response(params: Json, offer: AgentCapabilities) -> Json:
    """The answer to `initialize`, with our own protocol version, whatever the editor asks for."""
    version = params.get("protocolVersion")
    if isinstance(version, bool) or not isinstance(version, int | str):
        raise RpcError(INVALID_PARAMS, "Invalid params: protocolVersion must be an integer")
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentInfo": {"name": "frontdesk", "title": "Frontdesk", "version": __version__},
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": offer.images, "audio": offer.sounds, "embeddedContext": True},
            "mcpCapabilities": {"http": True, "sse": True},
            "sessionCapabilities": {
                name: {} for name in ("list", "resume", "close", "delete", "fork", "additionalDirectories", "title")
            },
            "auth": {"logout": {}},
        },
        "authMethods": [
            {
                "id": AUTH_METHOD,
                "name": "Frontdesk on this machine",
                "description": "Uses the model or the Letta server that Frontdesk is set up with.",
            }
        ],
        **({"_meta": {"steering": {"supported": True}}} if offer.steers else {}),
    }


def _object_or_empty(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def agent_capabilities(settings: Settings) -> AgentCapabilities:
    """The capabilities of the default model."""
    if settings.letta_base_url is not None:
        # The Letta server knows the model of an agent; each session checks media against its own model.
        return AgentCapabilities(
            images=settings.model is None or accepted_media(settings.model, settings.image_models)[0]
        )
    access = ModelAccess.from_settings(settings)
    images, sounds = accepted_media(access.default_model, access.image_models)
    return AgentCapabilities(images, sounds, steers=True)


INITIALIZE = "initialize"
OPENING_SECONDS = 60

# Opens a connection, given the peer and the editor's capabilities.
OpenConnection = Callable[[RpcPeer, EditorCapabilities], AbstractAsyncContextManager["EditorConnection"]]


@dataclass(slots=True)
class AcpServer:
    """Serves one editor; `open_connection` is called after `initialize`."""

    transport: FrameTransport
    capabilities: AgentCapabilities
    open_connection: OpenConnection
    on_error: Callable[[Exception], None]
    peer: RpcPeer = field(init=False)
    _tasks: TaskGroup = field(init=False)
    _editor_capabilities: EditorCapabilities | None = None
    _connection: "EditorConnection | None" = None
    _refusal: str | None = None
    _settled: anyio.Event = field(default_factory=anyio.Event)
    _leaving: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        self.peer = RpcPeer(self.transport, self.answer, self.handle_notification, self.on_error)

    async def run(self) -> None:
        """Serve until the editor leaves."""
        async with anyio.create_task_group() as self._tasks:
            await self.peer.run()
            self._leaving.set()
            if self._connection is None:
                # The connection is still being opened, and nobody waits for it any more.
                self._tasks.cancel_scope.cancel()

    async def answer(self, request: RpcRequest) -> Json:
        if request.method == INITIALIZE:
            return self._initialize(request)
        if self._editor_capabilities is None:
            raise RpcError(INVALID_REQUEST, "Send initialize first")
        return await (await self._opened()).answer(request)

    def handle_notification(self, method: str, params: Json) -> None:
        if self._connection is not None:
            self._connection.handle_notification(method, params)

    def _initialize(self, request: RpcRequest) -> Json:
        if self._editor_capabilities is not None:
            raise RpcError(INVALID_REQUEST, "initialize has been sent before")
        answer = initialize_response(request.params, self.capabilities)
        self._editor_capabilities = editor_capabilities(request.params)

        async def begin() -> None:
            self._tasks.start_soon(self._keep_open)

        request.after_answer.append(begin)
        return answer

    async def _opened(self) -> "EditorConnection":
        # An open connection is not awaited: the next frame, which may cancel this request, would go first.
        if not self._settled.is_set():
            with anyio.move_on_after(OPENING_SECONDS):
                await self._settled.wait()
        if self._connection is None:
            raise RpcError(INTERNAL_ERROR, self._refusal or "Frontdesk takes too long to start; try again")
        return self._connection

    async def _keep_open(self) -> None:
        """Keep the connection open until the editor leaves; one task opens and closes it."""
        try:
            async with self.open_connection(
                self.peer, self._editor_capabilities or EditorCapabilities()
            ) as self._connection:
                self._settled.set()
                await self._leaving.wait()
        except FrontdeskError as error:
            self._refusal = error.full_message
        except Exception as error:  # noqa: BLE001 - the outermost handler of a connection: the editor is told
            for one in _flatten_errors(error):
                self.on_error(one)
            self._refusal = "Frontdesk could not be opened; its log, on standard error, says why"
        finally:
            self._connection = None
            self._settled.set()


def _flatten_errors(error: Exception) -> Iterator[Exception]:
    """The single errors in a group, so that the log shows where each happened."""
    if isinstance(error, ExceptionGroup):
        for one in cast("ExceptionGroup[Exception]", error).exceptions:
            yield from _flatten_errors(one)
    else:
        yield error
