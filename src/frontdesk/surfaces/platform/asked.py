"""One request to the local platform: what it says, and what is found out about it on its way."""

import asyncio
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from pydantic import ValidationError
from starlette.responses import JSONResponse, Response

from frontdesk.loop.text import storable
from frontdesk.platform.local.checking import Claims
from frontdesk.platform.local.seen import NONE
from frontdesk.surfaces.gate import Message, Receive
from frontdesk.surfaces.mcp.frames import MAX_BODY
from frontdesk.surfaces.visit import Scope, Visit, visit_of

READ_SECONDS = 30
# These have something to say in their body.
BODIED = frozenset({"POST", "PUT", "PATCH"})
SHOWN = 10


@dataclass(slots=True)
class Asked:
    """A request with its whole body; the last fields are for the log, and are filled in by whoever finds them out."""

    scope: Scope
    body: bytes = b""
    token: str = NONE
    claims: Claims = field(default_factory=dict[str, object])
    server: str | None = None
    rpc_method: str | None = None
    tool: str | None = None
    status: int | None = None

    @property
    def visit(self) -> Visit:
        return visit_of(self.scope)

    @property
    def method(self) -> str:
        return self.scope["method"]

    @property
    def raw_path(self) -> str:
        """As it was sent, which says more than what it means."""
        raw: bytes = self.scope.get("raw_path") or quote(self.scope["path"]).encode()
        return raw.decode("latin-1")

    @property
    def parts(self) -> list[str]:
        """The parts of the path, each decoded by itself: a slash that was encoded parts nothing."""
        return [unquote(part) for part in self.raw_path.split("/")[1:]]


async def read(receive: Receive) -> bytes | Response:
    """The whole body, or what to answer when it is larger, or comes more slowly, than we take."""
    body, more = bytearray(), True
    try:
        async with asyncio.timeout(READ_SECONDS):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return problem(400, "cut_off", "The body was cut off")
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > MAX_BODY:
                    return problem(413, "too_large", "The body is too large; 4 MiB is the limit")
    except TimeoutError:
        return problem(408, "too_slow", f"The body did not arrive within {READ_SECONDS} s")
    return bytes(body)


def again(body: bytes, receive: Receive) -> Receive:
    """The body for whoever reads it next, and after it what the connection says."""
    said = [body]

    async def receive_again() -> Message:
        if said:
            return {"type": "http.request", "body": said.pop(), "more_body": False}
        return await receive()

    return receive_again


def problem(status: int, code: str, text: str, **more: object) -> JSONResponse:
    """A refusal: a word for programs and a sentence for people."""
    return JSONResponse({"error": code, "error_description": text, **more}, status)


def unfit(what: str, error: ValidationError) -> JSONResponse:
    """The refusal of a body; nothing that was sent is repeated but the names in it."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [f"{'.'.join(map(str, one['loc'])) or 'body'}: {one['msg'].removeprefix('Value error, ')}" for one in found]
    shown = lines[:SHOWN] + ([f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else [])
    return problem(400, "invalid_request", storable(f"{what}: {'; '.join(shown)}"), problems=shown)
