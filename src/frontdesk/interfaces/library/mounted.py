"""Frontdesk as an ASGI application: to mount in a FastAPI or Starlette app under a prefix, or to serve by itself."""

import re
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit, urlunsplit

import structlog

from frontdesk.app import App, base_url, open_app, running
from frontdesk.db.engine import server_lock
from frontdesk.errors import ConfigurationError, Conflict
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import URL_PREFIX_KEY, ASGIApp, Message, Receive, Scope, Send
from frontdesk.interfaces.library.desk import Desk
from frontdesk.interfaces.logs import pass_logs_on
from frontdesk.settings import Settings, is_loopback

NOT_OPEN = (
    "Frontdesk is not open yet. Pass its lifespan to the app that mounts it: FastAPI(lifespan=mounted.lifespan). "
    "If the app has a lifespan of its own, enter `async with mounted.lifespan(app):` in it"
)
WELL_KNOWN = "/.well-known"
# Pages of the login show addresses of FRONTDESK_PUBLIC_URL, which has the prefix already.
LOGIN_PATHS = "/oauth/"
# Streams of pages, whose events have parts of pages in JSON.
PAGE_STREAMS = "/live/"
ADDRESS_HEADERS = frozenset({b"location", b"hx-redirect", b"hx-location", b"hx-push-url", b"hx-replace-url"})
# An address of ours in an attribute. Texts of people and agents have their quotes escaped, and so never look like this.
ADDRESSES_IN_PAGE = re.compile(
    rb"""(\s(?:href|src|action|formaction|data-live|hx-(?:get|post|put|patch|delete))=\\?"|content="0;url=)/(?!/)"""
)

log = structlog.get_logger("frontdesk.http")

Headers = Iterable[tuple[bytes, bytes]]


def create_app(settings: Settings | None = None) -> "EmbeddedApp":
    """Frontdesk as an ASGI application: MCP, the HTTP API and the pages.

    Mount it in an app, and pass its lifespan on:
    `app = FastAPI(lifespan=mounted.lifespan); app.mount("/desk", mounted)`.
    Every request needs a credential, since nobody here knows where the app listens; `FRONTDESK_REQUIRE_AUTH=false`
    lets programs on this machine call without one.

    Args:
        settings: The settings; those of the environment and `frontdesk.toml` when left out. Set `public_url` to the
            address with the prefix, such as `https://example.com/desk`.

    Returns:
        The application. Its lifespan opens the services, and stops them.
    """
    return EmbeddedApp(settings or Settings.read())


class EmbeddedApp:
    """An ASGI application with everything that `frontdesk up` serves.

    Attributes:
        settings: The settings, with `require_auth` unless they say otherwise.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings.with_values(require_auth=settings.require_auth is not False)
        self._app: App | None = None
        self._serve: ASGIApp = _refuse
        self._warned = False

    @property
    def desk(self) -> Desk:
        """The methods of the library on the same services, for the app's own routes. It needs the lifespan."""
        if self._app is None:
            raise ConfigurationError(NOT_OPEN)
        return Desk(self._app)

    @asynccontextmanager
    async def lifespan(self, _app: object = None) -> AsyncGenerator[None]:
        """Open the services and run the background tasks until the end.

        Args:
            _app: The app that it is mounted in, which passes itself. It is not used.
        """
        if self._app is not None:
            raise Conflict("This Frontdesk is open already; pass its lifespan to one app only")
        pass_logs_on()
        with server_lock(self.settings):
            async with open_app(self.settings) as app:
                await app.check_exposure()
                async with running(app):
                    self._app, self._serve = app, build_application(app)
                    try:
                        yield
                    finally:
                        self._app, self._serve = None, _refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or the lifespan of a server that runs this application by itself."""
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
            return
        prefix = str(scope.get("root_path", "")).rstrip("/")
        self._check_public_url(prefix)
        await self._pass_on(scope, receive, send, prefix, _without_prefix(str(scope["path"]), prefix) or "/")

    async def well_known(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the documents about this application that clients look for at the root of the host.

        Mount it at `/.well-known` of the app, where people log in with Frontdesk: the metadata of an issuer with a
        prefix is at `/.well-known/oauth-authorization-server/desk`.
        """
        prefix = urlsplit(base_url(self.settings)).path
        inner = _without_prefix(str(scope["path"]), str(scope.get("root_path", "")))
        document, slash, rest = inner.removeprefix("/").partition("/")
        path = f"{WELL_KNOWN}/{document}{_without_prefix(slash + rest, prefix)}"
        await self._pass_on(scope, receive, send, prefix, path)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, prefix: str, path: str) -> None:
        address = quote(prefix)
        inner: Scope = {
            **scope,
            "path": path,
            "root_path": "",
            "app_root_path": "",
            "path_params": {},
            URL_PREFIX_KEY: address,
        }
        inner.pop("raw_path", None)
        if scope["type"] == "http":
            inner["headers"] = _inner_headers(scope, address)
        await self._serve(inner, receive, PrefixedAnswer(send, address.encode(), path) if prefix else send)

    def _check_public_url(self, prefix: str) -> None:
        """Warn once if documents for clients name an address without the prefix."""
        if not self._warned and urlsplit(base_url(self.settings)).path != prefix:
            self._warned = True
            log.warning("public_url_without_prefix", public_url=base_url(self.settings), prefix=prefix)

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as stack:
            await receive()
            try:
                await stack.enter_async_context(self.lifespan())
            except Exception as error:
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                raise
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})


async def _refuse(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise ConfigurationError(NOT_OPEN)


def _inner_headers(scope: Scope, prefix: str) -> list[tuple[bytes, bytes]]:
    """The headers of a request as they would be without the prefix.

    The middleware takes a request for a local one if no proxy passed it on: the server listens on loopback then. A
    mounted application may listen anywhere, so a request from another machine is marked.
    """
    headers = [
        (name, _inner_address(value, prefix) if name == b"hx-current-url" else value)
        for name, value in scope["headers"]
    ]
    peer = scope.get("client")
    address = str(peer[0]) if peer else "unknown"
    return headers if is_loopback(address) else [*headers, (b"x-forwarded-for", address.encode())]


def _inner_address(address: bytes, prefix: str) -> bytes:
    parts = urlsplit(address.decode("latin-1"))
    return urlunsplit(parts._replace(path=_without_prefix(parts.path, prefix) or "/")).encode("latin-1")


def _without_prefix(path: str, prefix: str) -> str:
    return path.removeprefix(prefix) if f"{path}/".startswith(f"{prefix}/") else path


@dataclass(slots=True)
class PrefixedAnswer:
    """Sends an answer with the prefix before its addresses: in redirects, in pages, and in the streams of pages."""

    send: Send
    prefix: bytes
    path: str
    start: Message | None = None
    body: bytearray = field(default_factory=bytearray)
    is_stream: bool = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif message["type"] == "http.response.body" and self.start is not None:
            await self._collect(self.start, message)
        elif message["type"] == "http.response.body" and self.is_stream:
            await self.send({**message, "body": self._rewrite(message.get("body", b""))})
        else:
            await self.send(message)

    async def _begin(self, message: Message) -> None:
        headers = [(name, self._address(name.lower(), value)) for name, value in message.get("headers", ())]
        message = {**message, "headers": headers}
        media_type = next((value for name, value in headers if name.lower() == b"content-type"), b"")
        self.is_stream = media_type.startswith(b"text/event-stream") and self.path.startswith(PAGE_STREAMS)
        if media_type.startswith(b"text/html") and not self.path.startswith(LOGIN_PATHS):
            # The length changes, so the head waits for the whole page.
            self.start = message
        else:
            await self.send(message)

    async def _collect(self, start: Message, message: Message) -> None:
        self.body += message.get("body", b"")
        if message.get("more_body"):
            return
        body = self._rewrite(bytes(self.body))
        headers = [(name, value) for name, value in start["headers"] if name.lower() != b"content-length"]
        await self.send({**start, "headers": [*headers, (b"content-length", str(len(body)).encode())]})
        await self.send({**message, "body": body})

    def _rewrite(self, body: bytes) -> bytes:
        return ADDRESSES_IN_PAGE.sub(lambda found: found[1] + self.prefix + b"/", body)

    def _address(self, name: bytes, value: bytes) -> bytes:
        ours = name in ADDRESS_HEADERS and value.startswith(b"/") and not value.startswith(b"//")
        return self.prefix + value if ours else value
