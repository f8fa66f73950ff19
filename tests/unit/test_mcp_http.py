"""Tests the HTTP client for MCP servers against servers with scripted answers, byte by byte, valid or not."""

import asyncio
import gc
import gzip
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import anyio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from frontdesk.mcp_client.http import HttpClient, HttpFailure, proxy_for
from tests.requirements import shows
from tests.support.waiting import until

SECONDS = 10
MB = 1024 * 1024
HEAD = b"HTTP/1.1 200 OK\r\n"
OK = HEAD + b"content-length: 2\r\n\r\nok"
POISON = HEAD + b"content-length: 6\r\n\r\npoison"
LONG_HEADER = b"x-more: " + b"y" * 1000 + b"\r\n"
BROKE_OFF = "broke off"
NOT_HTTP = "not HTTP"

NOTHING: Mapping[str, str] = {}

Piece = bytes | asyncio.Event | None


@pytest.fixture(scope="module", params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Both event loops that this runs on: they read from a connection in pieces of different sizes."""
    return "asyncio", {"use_uvloop": request.param}


class Script:
    """Answers each request with the next pieces; None hangs up, and it waits for an event."""

    def __init__(self, *answers: Sequence[Piece]) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.connections = 0
        self.open = 0
        self.sent = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    (line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), b":0"
                )
                self.requests.append(head + await reader.readexactly(int(length.split(b":")[1])))
                for piece in self.answers.pop(0):
                    if piece is None:
                        return
                    if isinstance(piece, asyncio.Event):
                        await piece.wait()
                        continue
                    writer.write(piece)
                    await writer.drain()
                    self.sent += len(piece)
                    await asyncio.sleep(0)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()


@asynccontextmanager
async def scripted(script: Script, tls: ssl.SSLContext | None = None) -> AsyncGenerator[str]:
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


@pytest.fixture
async def http() -> AsyncGenerator[HttpClient]:
    client = HttpClient(proxies={})
    yield client
    await client.close()


async def post(
    http: HttpClient, url: str, body: bytes = b"{}", headers: Mapping[str, str] = NOTHING
) -> tuple[int, bytes]:
    return await ask(http, "POST", url, body, headers)


async def ask(
    http: HttpClient, method: str, url: str, body: bytes | None = None, headers: Mapping[str, str] = NOTHING
) -> tuple[int, bytes]:
    with anyio.fail_after(SECONDS):
        async with http.send(method, url, {"x-said": "a", **headers}, body) as answer:
            return answer.status, b"".join([chunk async for chunk in answer.chunks()])


@shows("KEPT-08")
@pytest.mark.parametrize(
    ("pieces", "body"),
    [
        ([OK], b"ok"),
        ([bytes([byte]) for byte in OK], b"ok"),
        (
            [HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", b"1;x=y\r\n!\r\n0\r\nT: 1\r\n\r\n"],
            b"ok!",
        ),
        ([HEAD + b"\r\nuntil ", b"the end", None], b"until the end"),
        ([b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", OK], b"ok"),
        ([HEAD + b"content-length: 0\r\n\r\n"], b""),
        ([b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok"], b"ok"),
        ([HEAD + b"content-length: 1000000\r\n\r\n", *[b"x" * 100_000] * 10], b"x" * 1_000_000),
    ],
)
async def test_answers_are_read_in_every_form(http: HttpClient, pieces: list[Piece], body: bytes) -> None:
    async with scripted(Script(pieces)) as url:
        assert await post(http, url) == (200, body)


@pytest.mark.parametrize("status", [204, 304])
async def test_an_answer_without_a_body_leaves_its_connection_to_the_next_request(
    http: HttpClient, status: int
) -> None:
    script = Script([b"HTTP/1.1 %d Nothing\r\n\r\n" % status], [OK])
    async with scripted(script) as url:
        assert await post(http, url) == (status, b"")
        assert await post(http, url) == (200, b"ok")
    assert script.connections == 1


@shows("KEPT-08")
@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        ([None], BROKE_OFF),
        ([HEAD + b"content-le", None], BROKE_OFF),
        ([HEAD + b"content-length: 9\r\n\r\nshort", None], BROKE_OFF),
        ([HEAD + b"transfer-encoding: chunked\r\n\r\n5\r\nab", None], BROKE_OFF),
        ([HEAD + b"transfer-encoding: chunked\r\n\r\n5 of them\r\nab"], NOT_HTTP),
        ([b"SSH-2.0-OpenSSH_9.6\r\n"], NOT_HTTP),
        ([HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\nok"], NOT_HTTP),
        ([HEAD + b"content-length: -1\r\n\r\nok"], NOT_HTTP),
        ([HEAD + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\nok"], NOT_HTTP),
        ([HEAD, *[LONG_HEADER] * 1000], "too large"),
        ([HEAD, b"x-more: " + b"y" * MB], "too large"),
        ([HEAD + b"transfer-encoding: chunked\r\n\r\n0\r\n", *[LONG_HEADER] * 1000], NOT_HTTP),
    ],
)
async def test_answers_that_are_none_are_failures(http: HttpClient, pieces: list[Piece], reason: str) -> None:
    async with scripted(Script(pieces)) as url:
        with pytest.raises(HttpFailure, match=reason):
            await post(http, url)


async def test_a_connection_serves_one_request_after_another(http: HttpClient) -> None:
    script = Script([OK], [OK], [OK])
    async with scripted(script) as url:
        for _ in range(3):
            assert await post(http, f"{url}?a=%7e%2f", b"body") == (200, b"ok")
    assert script.connections == 1
    # An address of plain characters is sent unchanged.
    assert script.requests[2].startswith(b"POST /mcp?a=%7e%2f HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nx-said: a\r\n" in script.requests[2]
    assert script.requests[2].endswith(b"\r\n\r\nbody")


@shows("KEPT-08")
@pytest.mark.parametrize(
    "first",
    [
        [OK, None],
        [OK + POISON],
        [OK, POISON],
        [OK, b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", None],
        [OK, b"anything"],
        [HEAD + b"connection: close\r\ncontent-length: 2\r\n\r\nok"],
        [b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok"],
    ],
)
@pytest.mark.parametrize("turns", [0, 20], ids=["at once", "later"])
async def test_a_connection_that_said_more_or_hung_up_is_not_used_again(
    http: HttpClient, first: list[Piece], turns: int
) -> None:
    more = asyncio.Event()
    head, *rest = first
    script = Script([head, more, *rest], [OK])
    async with scripted(script) as url:
        assert await post(http, url) == (200, b"ok")
        more.set()
        sent = sum(len(piece) for piece in first if isinstance(piece, bytes))
        # Whether or not the event loop has noticed the server's action since.
        await until(lambda: script.sent == sent and (None not in first or script.open == 0))
        for _ in range(turns):
            await asyncio.sleep(0)
        assert await post(http, url) == (200, b"ok")
    assert (script.connections, len(script.requests)) == (2, 2)


@shows("KEPT-08")
async def test_a_call_is_never_sent_twice_and_what_changes_nothing_may_be(http: HttpClient) -> None:
    script = Script([OK], [None], [OK], [None], [OK])
    async with scripted(script) as url:
        await post(http, url)
        with pytest.raises(HttpFailure, match=BROKE_OFF):
            await post(http, url)
        assert len(script.requests) == 2
        await post(http, url)
        assert await ask(http, "GET", url) == (200, b"ok")
    assert [request.split(b" ")[0] for request in script.requests] == [b"POST"] * 3 + [b"GET"] * 2


async def test_a_connection_left_idle_is_closed() -> None:
    http, script = HttpClient(idle_seconds=0.02, proxies={}), Script([OK], [OK])
    async with scripted(script) as url:
        await post(http, url)
        await until(lambda: script.open == 0)
        await post(http, url)
    assert script.connections == 2
    await http.close()


async def test_an_answer_left_early_takes_its_connection_along(http: HttpClient) -> None:
    script = Script([HEAD + b"content-length: 9\r\n\r\nhalf"], [OK])
    async with scripted(script) as url:
        async with http.send("POST", url, {}, b"") as answer:
            assert await anext(aiter(answer.chunks())) == b"half"
            assert not answer.complete
        assert await post(http, url) == (200, b"ok")
    assert script.connections == 2


async def test_a_caller_who_gives_up_takes_the_connection_along(http: HttpClient) -> None:
    script = Script([], [OK])
    async with scripted(script) as url:
        async with anyio.create_task_group() as asking:
            asking.start_soon(post, http, url)
            await until(lambda: len(script.requests) == 1)
            asking.cancel_scope.cancel()
        assert await post(http, url) == (200, b"ok")
    assert script.connections == 2


@shows("KEPT-08")
async def test_who_sends_faster_than_we_read_has_to_wait(http: HttpClient) -> None:
    size = 64 * MB
    script = Script([HEAD + b"content-length: %d\r\n\r\n" % size, *[b"x" * MB] * 64], [OK])
    async with scripted(script) as url:
        async with http.send("POST", url, {}, b"") as answer:
            before = -1
            while script.sent > before:
                before = script.sent
                for _ in range(200):
                    await asyncio.sleep(0)
            assert script.sent < size / 2
            assert sum([len(chunk) async for chunk in answer.chunks()]) == size
        assert await post(http, url) == (200, b"ok")
    assert script.connections == 1


async def test_a_large_body_is_sent_whole(http: HttpClient) -> None:
    script = Script([OK])
    async with scripted(script) as url:
        assert await post(http, url, b"x" * 3 * MB) == (200, b"ok")
    assert script.requests[0].endswith(b"\r\n\r\n" + b"x" * 3 * MB)


async def test_what_is_compressed_comes_as_it_is(http: HttpClient) -> None:
    packed = gzip.compress(bytes(10 * MB))
    head = HEAD + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)
    async with scripted(Script([head + packed])) as url:
        assert await post(http, url) == (200, packed)


async def test_no_redirect_is_followed_and_no_cookie_kept(http: HttpClient) -> None:
    script = Script(
        [b"HTTP/1.1 307 Moved\r\nlocation: /else\r\nset-cookie: user=ada\r\ncontent-length: 0\r\n\r\n"], [OK]
    )
    async with scripted(script) as url:
        assert await post(http, url, headers={"authorization": "Bearer secret"}) == (307, b"")
        assert await post(http, url) == (200, b"ok")
    assert len(script.requests) == 2
    assert b"user=ada" not in script.requests[1]
    assert b"secret" not in script.requests[1]


@pytest.mark.parametrize("headers", [{"x": "a\r\nx-agent-id: other"}, {"x": "a\nb"}, {"x": "a\x00b"}, {"x\r\ny": "a"}])
async def test_a_header_cannot_bring_others_along(http: HttpClient, headers: dict[str, str]) -> None:
    script = Script([OK])
    async with scripted(script) as url:
        with pytest.raises(HttpFailure, match="header") as refused:
            await post(http, url, headers=headers)
    assert "other" not in str(refused.value)
    assert script.requests == []


async def test_where_a_request_ends_is_for_the_library_to_say(http: HttpClient) -> None:
    script = Script([OK])
    said = {"transfer-encoding": "chunked", "content-length": "0", "connection": "x", "expect": "y", "host": "inner"}
    async with scripted(script) as url:
        assert await post(http, url, headers=said) == (200, b"ok")
    lines = script.requests[0].lower().split(b"\r\n")
    assert b"content-length: 2" in lines
    assert b"host: inner" in lines
    assert not any(line.startswith((b"transfer-encoding", b"connection", b"expect")) for line in lines)


@pytest.mark.parametrize(
    ("url", "host", "target"),
    [
        ("http://host", "host", "http://host/"),
        ("http://host:80/x", "host", "http://host/x"),
        ("http://host:8443/x?y=%20", "host:8443", "http://host:8443/x?y=%20"),
        ("http://[::1]:81/", "[::1]:81", "http://[::1]:81/"),
        ("http://host?q", "host", "http://host/?q"),
        ("http://host/a b/ü", "host", "http://host/a%20b/%C3%BC"),
        ("http://höst/", "xn--hst-sna", "http://xn--hst-sna/"),
    ],
)
async def test_a_proxy_of_the_environment_is_asked_for_any_address(
    monkeypatch: pytest.MonkeyPatch, url: str, host: str, target: str
) -> None:
    script = Script([OK])
    async with scripted(script) as address:
        monkeypatch.setenv("HTTP_PROXY", address.replace("http://", "http://ada:word@").removesuffix("/mcp"))
        http = HttpClient()
        assert await post(http, url) == (200, b"ok")
        await http.close()
    first, *lines = script.requests[0].decode().split("\r\n")
    assert first.split(" ")[1].rstrip("/") == target.rstrip("/")
    assert f"host: {host}" in [line.lower() for line in lines]
    assert "proxy-authorization: basic ywrhondvcmq=" in [line.lower() for line in lines]


def test_which_addresses_go_through_which_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "inside.example,127.0.0.1:9")
    proxies = {"https": "http://proxy:1", "all": "other:2"}
    assert proxy_for("https://host/", proxies) == "http://proxy:1"
    assert proxy_for("http://host/", proxies) == "http://other:2"
    assert proxy_for("https://mail.inside.example/", proxies) is None
    assert proxy_for("http://127.0.0.1:9/", proxies) is None
    assert proxy_for("http://host/", {"https": "http://proxy:1"}) is None


async def test_no_login_of_the_surroundings_is_shown(
    http: HttpClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login ada password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    script = Script([OK])
    async with scripted(script) as url:
        await post(http, url)
    assert b"authorization" not in script.requests[0].lower()


@pytest.mark.parametrize(
    "url", ["ftp://host/", "http://u@host/", "http://u:p@host/", "http://host:x/", "host", "http:///x", "http://[::1/"]
)
async def test_an_address_that_is_none_is_a_failure(http: HttpClient, url: str) -> None:
    with pytest.raises(HttpFailure, match="address"):
        await post(http, url)


def certificate(folder: Path) -> Path:
    """A self-signed certificate for 127.0.0.1 with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return file


async def test_a_certificate_must_be_trusted_and_name_the_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = certificate(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(file)
    script = Script([OK], [OK])
    async with scripted(script, tls) as url:
        stranger = HttpClient()
        with pytest.raises(HttpFailure, match="certificate is not trusted"):
            await post(stranger, url)
        await stranger.close()
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        trusting = HttpClient()
        assert [await post(trusting, url), await post(trusting, url)] == [(200, b"ok")] * 2
        with pytest.raises(HttpFailure, match="certificate is not trusted"):
            await post(trusting, url.replace("127.0.0.1", "localhost"))
        await trusting.close()
    assert len(script.requests) == 2


@shows("KEPT-08")
async def test_what_is_closed_while_its_first_request_is_made_ready_leaves_nothing_open() -> None:
    http = HttpClient(proxies={})
    asking = asyncio.create_task(post(http, "http://127.0.0.1:1/"))
    # The request waits for a thread now, which loads the library.
    await asyncio.sleep(0)
    await http.close()
    with pytest.raises(HttpFailure, match="shutting down"):
        await asking
    del http, asking
    # Open connections are reported now.
    gc.collect()


async def test_nothing_is_sent_once_it_is_closed(http: HttpClient) -> None:
    await http.close()
    with pytest.raises(HttpFailure, match="shutting down"):
        await post(http, "http://127.0.0.1:1/")
