"""A client of a running Frontdesk server, with the methods of the library and the errors of `frontdesk.errors`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import quote

import httpx2
from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from frontdesk import errors
from frontdesk.errors import (
    Conflict,
    Denied,
    FrontdeskError,
    Invalid,
    MissingScope,
    NotFound,
    PendingApproval,
    RateLimited,
    Unauthenticated,
    Unavailable,
)
from frontdesk.interfaces.http.errors import ERROR_NAME_HEADER
from frontdesk.interfaces.library.exposure import LibraryMethod, library_methods
from frontdesk.interfaces.library.methods import DeskMethods
from frontdesk.interfaces.rest.routing import RouteModels

API_PREFIX = "/api"
PROTOCOL_VERSION = "2026-07-28"
REQUEST_META: Mapping[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": PROTOCOL_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
ERRORS_BY_NAME: Mapping[str, type[FrontdeskError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, FrontdeskError)
}
# For refusals that come before any operation, without the name of an error.
ERROR_OF_STATUS: Mapping[int, type[FrontdeskError]] = {
    400: Invalid,
    401: Unauthenticated,
    403: Denied,
    404: NotFound,
    409: Conflict,
    429: RateLimited,
    503: Unavailable,
}
TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class HttpTransport:
    """Sends calls to a server: to the HTTP API, or to the MCP tools that it has no route for."""

    url: str
    http: httpx2.AsyncClient
    headers: Mapping[str, str]

    async def call(self, name: str, arguments: Mapping[str, object]) -> Any:  # noqa: ANN401 - the type of the method's answer
        method = library_methods()[name]
        fields = cast("dict[str, Any]", to_jsonable_python(method.given(arguments), by_alias=True))
        if method.route is not None:
            answer = await self._call_route(method.route, fields)
        else:
            answer = await self._call_tool(method, fields)
        try:
            return method.adapter.validate_python(answer)
        except ValidationError as error:
            raise Unavailable(f"{self.url} answers {name} in a form that is not known here: {error}") from error

    async def _call_route(self, models: RouteModels, fields: Mapping[str, Any]) -> object:
        path, query, body = API_PREFIX + models.route.path, dict[str, Any](), dict[str, Any]()
        in_body = () if models.body is None else {one.alias or name for name, one in models.body.model_fields.items()}
        for name, value in fields.items():
            if name in models.path_names:
                written = quote(str(value), safe="")
                path = path.replace(f"{{{name}}}", written).replace(f"{{{name}:path}}", written)
            elif name in in_body:
                body[name] = value
            else:
                query[name] = value
        sends_body = models.body is not None and (body or models.route.body_required)
        response = await self._send(models.route.method, path, query, body if sends_body else None)
        return _json(response)

    async def _call_tool(self, method: LibraryMethod, fields: Mapping[str, Any]) -> object:
        assert method.tool is not None  # noqa: S101 - a method has a route or a tool
        name = method.tool.name or method.operation.name
        params = {"name": name, "arguments": fields, "_meta": REQUEST_META}
        frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": PROTOCOL_VERSION,
            "mcp-method": "tools/call",
            "mcp-name": name,
        }
        path = f"/mcp/{method.tool.path}".rstrip("/")
        response = await self._send("POST", path, {}, frame, headers)
        answer = cast("dict[str, Any]", _json(response))
        if "error" in answer:
            raise _error_of(response, _message(response), Invalid)
        result: dict[str, Any] = answer["result"]
        data: dict[str, Any] = result.get("structuredContent") or {}
        if result.get("isError") or ERROR_NAME_HEADER in response.headers:
            texts = (one.get("text", "") for one in cast("list[dict[str, Any]]", result["content"]))
            raise _error_of(response, str(data.get("error") or "".join(texts)), FrontdeskError)
        return data

    async def _send(
        self, method: str, path: str, query: Mapping[str, Any], body: object, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        try:
            response = await self.http.request(
                method,
                f"{self.url}{path}",
                params=query or None,
                content=None if body is None else json.dumps(body).encode(),
                headers={"content-type": "application/json", **self.headers, **(headers or {})},
            )
        except httpx2.HTTPError as error:
            raise Unavailable(f"{self.url} does not answer: {error or type(error).__name__}") from error
        if response.is_success:
            return response
        kind = ERROR_OF_STATUS.get(response.status_code, FrontdeskError)
        raise _error_of(response, _message(response), kind)


def _json(response: httpx2.Response) -> object:
    """The answer. One that took long comes as an event stream, whose last event has it."""
    text = response.text
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        text = text.rpartition("data: ")[2]
    try:
        return json.loads(text)
    except ValueError as error:
        raise Unavailable(f"{response.url} does not answer as Frontdesk does; is this its address?") from error


def _message(response: httpx2.Response) -> str:
    """What the body of a refusal says."""
    body = _error_body(response)
    error = body.get("error", "")
    if isinstance(error, dict):
        return str(cast("dict[str, object]", error).get("message", ""))
    more = body.get("details", body.get("error_description"))
    if more is None:
        return str(error) or f"{response.url} answers with status {response.status_code}"
    return str(more) if isinstance(more, str) else f"{error}: {json.dumps(more, ensure_ascii=False)}"


def _error_body(response: httpx2.Response) -> Mapping[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return cast("dict[str, Any]", body) if isinstance(body, dict) else {}


def _error_of(response: httpx2.Response, message: str, default: type[FrontdeskError]) -> FrontdeskError:
    """The error that the server raised, of the same class."""
    kind = ERRORS_BY_NAME.get(response.headers.get(ERROR_NAME_HEADER, ""), default)
    # The classes make their messages from facts that the server does not send.
    error: FrontdeskError = kind.__new__(kind, message)
    body = _error_body(response)
    match error:
        case MissingScope():
            error.scope = _missing_scope(body)
        case PendingApproval():
            error.call_ids = tuple(body.get("pending", ()))
        case RateLimited():
            error.retry_after = float(response.headers.get("retry-after", 0))
        case Unavailable():
            return Unavailable(message, retry_after=float(response.headers.get("retry-after", 0)) or None)
        case Invalid():
            error.hint = ""
        case _:
            pass
    return error


def _missing_scope(body: Mapping[str, Any]) -> str:
    """The scope in a refusal of the HTTP API or of MCP."""
    match body:
        case {"required_scopes": [str(scope), *_]} | {"error": {"data": {"scope": str(scope)}}}:
            return scope
        case _:
            return ""


class Client(DeskMethods):
    """A client of a running server, with the same methods as a desk in this process.

    Use it as a context: `async with Client(url, key=…) as desk:`.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        agent_id: str | None = None,
        user_token: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        http: httpx2.AsyncClient | None = None,
    ) -> None:
        """Prepare a client; nothing is sent yet.

        Args:
            url: The server's address, such as `http://127.0.0.1:3020`, with the prefix that it is mounted at.
            key: The key or token to send. It decides who calls, and what they may do.
            agent_id: The agent that calls, where the key does not name it.
            user_token: The key or token of a person, beside a key for every agent.
            timeout: How many seconds a call may take.
            http: An HTTP client to send with; its own when left out. It is not closed.
        """
        self._connections = http or httpx2.AsyncClient(timeout=timeout)
        self._closes = http is None
        headers = {
            "authorization": f"Bearer {key}" if key else "",
            "x-agent-id": agent_id or "",
            "x-user-auth-token": user_token or "",
        }
        sent = {name: value for name, value in headers.items() if value}
        self._http = HttpTransport(url.rstrip("/"), self._connections, sent)
        super().__init__(self._http)

    def as_agent(self, agent_id: str) -> DeskMethods:
        """The same methods for another agent, over this client's connections.

        Args:
            agent_id: The agent's id; the key must cover it.

        Returns:
            Methods whose calls are this agent's, until this client ends.
        """
        return DeskMethods(replace(self._http, headers={**self._http.headers, "x-agent-id": agent_id}))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._closes:
            await self._connections.aclose()
