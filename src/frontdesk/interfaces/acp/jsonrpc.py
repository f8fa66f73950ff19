"""Speaks JSON-RPC with an editor over any transport: parses frames, answers requests, and sends requests back."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NoReturn, Protocol, TypeGuard, cast

import anyio
from anyio.lowlevel import checkpoint

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
AUTH_REQUIRED = -32000
NOT_FOUND = -32002
RATE_LIMITED = -32003
TOO_LONG = -32004
UNAVAILABLE = -32005
CANCELLED = -32800

Json = Mapping[str, Any]


class RpcError(Exception):
    """An error response: a message of one line, without internals."""

    def __init__(self, code: int, message: str, data: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = " ".join(message.split())
        self.data = data


class ConnectionClosed(Exception):
    """The other side has left."""


@dataclass(slots=True)
class RpcRequest:
    """A request under way.

    On a cancel, `on_cancel` is called where it is set; else the handler's scope is cancelled. `after_answer` runs once
    the answer is sent. `withdrawn` is true where a notification has cancelled the request before it began.
    """

    id: int | str | None
    method: str
    params: Json
    on_cancel: Callable[[], None] | None = None
    after_answer: list[Callable[[], Awaitable[None]]] = field(default_factory=list[Callable[[], Awaitable[None]]])
    withdrawn: bool = False


# Returns the result of a request, or raises `RpcError`.
HandleRequest = Callable[[RpcRequest], Awaitable[Json]]
# Handles a notification immediately and in order; it must not wait.
HandleNotification = Callable[[str, Json], None]


class FrameTransport(Protocol):
    """Moves frames, each the bytes of one JSON text without a line break."""

    async def receive(self) -> bytes | None:
        """The next frame; None at the end. One that is too long comes as `OVERLONG`."""
        ...

    async def send(self, frame: bytes) -> None:
        """Send a frame, in order; waits for a slow reader, and raises `ConnectionClosed` where it has left."""
        ...

    async def close(self) -> None:
        """Finish sending, in bounded time."""
        ...


OVERLONG = b""

FrameId = int | str | None


@dataclass(frozen=True, slots=True)
class RequestFrame:
    """A request; it gets an answer, even if its id is null."""

    id: FrameId
    method: str
    params: Json


@dataclass(frozen=True, slots=True)
class NotificationFrame:
    """A frame that gets no answer."""

    method: str
    params: Json


@dataclass(frozen=True, slots=True)
class ResponseFrame:
    """The answer to a request of ours; `id` is None where it cannot be one of ours."""

    id: int | None
    result: object = None
    error: object = None


@dataclass(frozen=True, slots=True)
class InvalidFrame:
    """Bytes that are not a frame; `id` is that of the request that they may have been."""

    code: int
    message: str
    id: FrameId = None


Frame = RequestFrame | NotificationFrame | ResponseFrame | InvalidFrame


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _to_null(_name: str) -> None:
    return None


# Made once: with arguments like these, `json.loads` and `json.dumps` make a new one for every call.
_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode
_to_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def parse_frame(data: bytes) -> Frame:
    """Parse one line; a mistake in it gives an `InvalidFrame`, not an exception."""
    try:
        frame = _read_json(data.decode())
    except (ValueError, RecursionError):
        return InvalidFrame(PARSE_ERROR, "Parse error: a frame is one JSON text in UTF-8")
    if not isinstance(frame, dict):
        return InvalidFrame(INVALID_REQUEST, "A frame is one JSON-RPC object; batches are not accepted")
    return _classify_frame(cast("dict[str, Any]", frame))


def result_frame(number: FrameId, result: Json) -> bytes:
    return encode_frame({"jsonrpc": "2.0", "id": number, "result": result})


def error_frame(number: FrameId, error: RpcError) -> bytes:
    told: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        told["data"] = error.data
    return encode_frame({"jsonrpc": "2.0", "id": number, "error": told})


def request_frame(number: FrameId, method: str, params: Json) -> bytes:
    return encode_frame({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def notification_frame(method: str, params: Json) -> bytes:
    return encode_frame({"jsonrpc": "2.0", "method": method, "params": params})


def encode_frame(value: Json) -> bytes:
    """One line of JSON for every reader: no NaN, no lone surrogates, no characters that end a line in JavaScript."""
    text = _json_text(value)
    if text.isascii():
        return text.encode()
    return _replace_surrogates(text).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").encode()


def _json_text(value: Json) -> str:
    try:
        return _to_json(value)
    except ValueError:
        return _to_json(json.loads(json.dumps(value), parse_constant=_to_null))


def _read_json(text: str) -> object:
    frame: object = _decode(text)
    # A lone surrogate can only come as an escape; a text with one can be neither stored nor sent.
    if "\\ud" in text or "\\uD" in text:
        plain = json.dumps(frame, ensure_ascii=False)
        mended = _replace_surrogates(plain)
        return frame if mended is plain else _decode(mended)
    return frame


def _replace_surrogates(text: str) -> str:
    """The text with a replacement character for each lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _classify_frame(frame: dict[str, Any]) -> Frame:
    method, params = frame.get("method"), frame.get("params")
    # The id of a response is ours; in an answer of ours the other side would take it for one of its own.
    number = _frame_id(frame) if "method" in frame else None
    if frame.get("jsonrpc") != "2.0":
        return InvalidFrame(INVALID_REQUEST, 'A frame needs "jsonrpc": "2.0"', number)
    if "method" not in frame and ("result" in frame or "error" in frame):
        return ResponseFrame(_own_id(frame.get("id")), frame.get("result"), frame.get("error"))
    if not isinstance(method, str):
        return InvalidFrame(INVALID_REQUEST, "A frame needs a method, which is a string", number)
    if "id" not in frame:
        return NotificationFrame(method, _object_or_none(params) or {})
    return _request(frame, number, method)


def _request(frame: dict[str, Any], number: FrameId, method: str) -> RequestFrame | InvalidFrame:
    if number is None and frame["id"] is not None:
        return InvalidFrame(INVALID_REQUEST, "An id is a string, an integer or null")
    params: object = frame.get("params")
    # Lua encodes an object without fields as a list.
    known = _object_or_none({} if params is None or params == [] else params)
    if known is None:
        return InvalidFrame(INVALID_REQUEST, "The params of a frame are an object", number)
    return RequestFrame(number, method, known)


def _frame_id(frame: dict[str, Any]) -> FrameId:
    number: object = frame.get("id")
    return number if isinstance(number, int | str) and not isinstance(number, bool) else None


def _own_id(number: object) -> int | None:
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _object_or_none(params: object) -> Json | None:
    return cast("dict[str, Any]", params) if isinstance(params, dict) else None


CANCEL_REQUEST = "$/cancel_request"
WITHDRAW_SECONDS = 1

SendFrame = Callable[[bytes], Awaitable[None]]


class OutgoingRequests:
    """Our requests to the other side, each with a number of its own."""

    def __init__(self, send: SendFrame) -> None:
        self._send = send
        self._numbers = count(1)
        self._open: dict[int, asyncio.Future[ResponseFrame | None]] = {}
        self._ended = False

    async def request(self, method: str, params: Json, seconds: float) -> Json:
        """Returns the result; raises `RpcError`, `TimeoutError`, or `ConnectionClosed`."""
        if self._ended:
            raise ConnectionClosed("The other side has left")
        number = next(self._numbers)
        answer = self._open[number] = asyncio.get_running_loop().create_future()
        try:
            with anyio.fail_after(seconds):
                await self._send(request_frame(number, method, params))
                reply = await answer
        except (TimeoutError, asyncio.CancelledError):
            await self._withdraw(number)
            raise
        finally:
            del self._open[number]
        return _response_result(method, reply)

    def settle(self, reply: ResponseFrame) -> None:
        """Pass an answer to the task that waits for it; an answer that nobody waits for is dropped."""
        answer = self._open.get(reply.id) if reply.id is not None else None
        if answer is not None and not answer.done():
            answer.set_result(reply)

    def end(self) -> None:
        """The other side has left: no request gets an answer any more."""
        self._ended = True
        for answer in self._open.values():
            if not answer.done():
                answer.set_result(None)

    async def _withdraw(self, number: int) -> None:
        with anyio.move_on_after(WITHDRAW_SECONDS, shield=True), suppress(ConnectionClosed):
            await self._send(notification_frame(CANCEL_REQUEST, {"requestId": number}))


def _response_result(method: str, reply: ResponseFrame | None) -> Json:
    if reply is None:
        raise ConnectionClosed("The other side left before it answered")
    if reply.error is not None:
        raise _response_error(method, reply.error)
    if reply.result is None:
        return {}
    if not isinstance(reply.result, dict):
        raise RpcError(INTERNAL_ERROR, f"The answer to {method} is not an object")
    return cast("dict[str, Any]", reply.result)


def _response_error(method: str, error: object) -> RpcError:
    told = cast("dict[str, Any]", error) if isinstance(error, dict) else {}
    code, message, data = told.get("code"), told.get("message"), told.get("data")
    return RpcError(
        code if isinstance(code, int) else INTERNAL_ERROR,
        message if isinstance(message, str) and message.strip() else f"{method} was refused without a reason",
        cast("dict[str, Any]", data) if isinstance(data, dict) else None,
    )


MOST_REQUESTS = 512
CLEANUP_SECONDS = 5

OnUnexpectedError = Callable[[Exception], None]


@dataclass(slots=True)
class _RunningRequest:
    """`scope` is around the handler; `life` is around everything, including what runs after the answer."""

    request: RpcRequest
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    life: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class RpcPeer:
    """One end of a connection: `run` serves the other side; meanwhile `request` and `notify` call it.

    Frames that a handler sends before it returns go out before its answer.
    """

    def __init__(
        self,
        transport: FrameTransport,
        answer: HandleRequest,
        handle_notification: HandleNotification,
        on_error: OnUnexpectedError,
        cleanup_seconds: float = CLEANUP_SECONDS,
    ) -> None:
        self._transport = transport
        self._answer = answer
        self._handle_notification = handle_notification
        self._on_error = on_error
        self._cleanup_seconds = cleanup_seconds
        self._outgoing = OutgoingRequests(transport.send)
        self._under_way: dict[FrameId, _RunningRequest] = {}
        self._tasks: dict[asyncio.Task[None], _RunningRequest] = {}
        self._reading = anyio.CancelScope()

    async def run(self) -> None:
        """Serve until the other side leaves; then stop everything that was begun for it."""
        try:
            with self._reading:
                await self._receive_frames()
        finally:
            self._outgoing.end()
            await self._stop()

    async def request(self, method: str, params: Json, seconds: float) -> Json:
        """Returns the result; raises `RpcError`, `TimeoutError`, or `ConnectionClosed`.

        After a timeout or a cancel, the other side is notified that the request is withdrawn.
        """
        return await self._outgoing.request(method, params, seconds)

    async def notify(self, method: str, params: Json) -> None:
        """Send a notification; waits for a slow reader."""
        await self._transport.send(notification_frame(method, params))

    async def _receive_frames(self) -> None:
        with suppress(ConnectionClosed):
            while (data := await self._transport.receive()) is not None:
                await self._handle_frame(_checked_frame(data))
                # Lets this request begin before the next frame, which may cancel it.
                await checkpoint()

    async def _handle_frame(self, frame: Frame) -> None:
        match frame:
            case RequestFrame():
                await self._begin(frame)
            case NotificationFrame(method, params) if method == CANCEL_REQUEST:
                self._handle_safely(lambda: self._cancel(params.get("requestId")))
            case NotificationFrame(method, params):
                self._handle_safely(lambda: self._handle_notification(method, params))
            case ResponseFrame():
                self._outgoing.settle(frame)
            case InvalidFrame():
                await self._refuse(frame.id, RpcError(frame.code, frame.message))

    async def _begin(self, call: RequestFrame) -> None:
        if problem := self._refusal(call):
            return await self._refuse(call.id, RpcError(INVALID_REQUEST, problem))
        begun = self._under_way[call.id] = _RunningRequest(RpcRequest(call.id, call.method, call.params))
        # Not a task group: that would wait forever for a task that does not end.
        task = asyncio.create_task(self._serve(begun))
        self._tasks[task] = begun
        return task.add_done_callback(self._done)

    def _refusal(self, call: RequestFrame) -> str:
        if call.id in self._under_way:
            return "A request with this id is under way; give each an id of its own"
        if len(self._tasks) >= MOST_REQUESTS:
            return f"{MOST_REQUESTS} requests are under way; wait for the answer to one of them"
        return ""

    async def _refuse(self, number: FrameId, error: RpcError) -> None:
        await self._transport.send(error_frame(number, error))

    async def _serve(self, begun: _RunningRequest) -> None:
        with begun.life:
            try:
                await self._transport.send(await self._answered(begun))
                for work in begun.request.after_answer:
                    await self._attempt(work)
            except ConnectionClosed:
                self._reading.cancel()

    async def _answered(self, begun: _RunningRequest) -> bytes:
        request = begun.request
        refusal = RpcError(CANCELLED, "The request was cancelled")
        try:
            with begun.scope:
                return result_frame(request.id, await self._answer(request))
        except RpcError as error:
            refusal = error
        except ConnectionClosed:
            raise
        except asyncio.CancelledError:
            # Something that the handler waited for was cancelled. If the connection ends, nobody wants an answer.
            if begun.life.cancel_called:
                raise
        except Exception as error:  # noqa: BLE001 - the outermost handler: every request gets an answer
            self._on_error(error)
            refusal = RpcError(INTERNAL_ERROR, "Internal error")
        finally:
            # Before the answer goes out: the other side may use the id again once it has read it.
            del self._under_way[request.id]
        return error_frame(request.id, refusal)

    async def _attempt(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except ConnectionClosed:
            raise
        except Exception as error:  # noqa: BLE001 - the answer is sent, and the rest can still be done
            self._on_error(error)

    def _cancel(self, number: object) -> None:
        begun = self._under_way.get(number) if _is_id(number) else None
        if begun is None:
            return
        if begun.request.on_cancel is not None:
            begun.request.on_cancel()
        else:
            begun.scope.cancel()

    def _handle_safely(self, handle: Callable[[], None]) -> None:
        try:
            handle()
        except RpcError:
            # A notification gets no answer, so the sender cannot be informed.
            return
        except Exception as error:  # noqa: BLE001 - one bad notification must not end the connection
            self._on_error(error)

    def _done(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            self._on_error(error)

    async def _stop(self) -> None:
        for begun in self._tasks.values():
            begun.life.cancel()
        if self._tasks:
            with anyio.CancelScope(shield=True):
                await asyncio.wait(self._tasks, timeout=self._cleanup_seconds)
        for begun in self._tasks.values():
            self._on_error(RuntimeError(f"{begun.request.method} did not end in {self._cleanup_seconds:g} s"))


def _checked_frame(data: bytes) -> Frame:
    if data == OVERLONG:
        return InvalidFrame(INVALID_REQUEST, "The frame is too long")
    return parse_frame(data)


def _is_id(number: object) -> TypeGuard[FrameId]:
    return number is None or (isinstance(number, int | str) and not isinstance(number, bool))
