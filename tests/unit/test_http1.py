"""Our own HTTP client against servers that answer byte by byte as a test wants, and some that answer wrongly."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import anyio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from frontdesk.loop.mcp.http import Failure
from frontdesk.loop.mcp.http1.address import address_of
from frontdesk.loop.mcp.http1.client import Http1, request_bytes
from frontdesk.loop.mcp.http1.connection import MAX_OVERHEAD, MAX_UNREAD
from frontdesk.loop.mcp.library import Either, Library
from tests.support.waiting import until

SECONDS = 10
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Script:
    """Answers each request with the next pieces; None hangs up."""

    def __init__(self, *answers: Sequence[bytes | None]) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next((line for line in head.split(b"\r\n") if line.startswith(b"content-length:")), b":0")
                self.requests.append(head + await reader.readexactly(int(length.split(b":")[1])))
                for piece in self.answers.pop(0):
                    if piece is None:
                        return
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def scripted(script: Script, tls: ssl.SSLContext | None = None) -> AsyncGenerator[str]:
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


@pytest.fixture
async def http() -> AsyncGenerator[Http1]:
    client = Http1()
    yield client
    await client.close()


async def post(http: Http1 | Either | Library, url: str, body: bytes = b"{}") -> tuple[int, bytes]:
    with anyio.fail_after(SECONDS):
        async with http.send("POST", url, {"x-said": "a"}, body) as answer:
            return answer.status, b"".join([chunk async for chunk in answer.chunks()])


@pytest.mark.parametrize(
    ("pieces", "body"),
    [
        ([OK], b"ok"),
        ([bytes([byte]) for byte in OK], b"ok"),
        (
            [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", b"1;x=y\r\n!\r\n0\r\nT: 1\r\n\r\n"],
            b"ok!",
        ),
        ([b"HTTP/1.1 200 OK\r\n\r\nuntil ", b"the end", None], b"until the end"),
        ([b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", OK], b"ok"),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"], b""),
        ([b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok"], b"ok"),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n", *[b"x" * 100_000] * 10], b"x" * 1_000_000),
    ],
)
async def test_answers_are_read_in_every_form(http: Http1, pieces: list[bytes | None], body: bytes) -> None:
    async with scripted(Script(pieces)) as url:
        assert await post(http, url) == (200, body)


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        ([None], "broke off"),
        ([b"HTTP/1.1 200 OK\r\ncontent-le", None], "broke off"),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort", None], "broke off"),
        ([b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab", None], "broke off"),
        ([b"SSH-2.0-OpenSSH_9.6\r\n"], "not HTTP"),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok"], "not HTTP"),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\nok"], "not HTTP"),
        ([b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"], "not HTTP"),
        ([b"HTTP/1.1 200 OK\r\n", *[b"x-more: " + b"y" * 1000 + b"\r\n"] * (MAX_OVERHEAD // 1000 + 1)], "too large"),
        (
            [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n"]
            + [b"x-more: " + b"y" * 1000 + b"\r\n"] * (MAX_OVERHEAD // 1000 + 1),
            "too large",
        ),
    ],
)
async def test_answers_that_are_none_are_failures(http: Http1, pieces: list[bytes | None], reason: str) -> None:
    async with scripted(Script(pieces)) as url:
        with pytest.raises(Failure, match=reason):
            await post(http, url)


async def test_a_connection_serves_one_request_after_another(http: Http1) -> None:
    script = Script([OK], [OK], [OK])
    async with scripted(script) as url:
        for _ in range(3):
            assert await post(http, url, b"body") == (200, b"ok")
    assert script.connections == 1
    assert script.requests[2].startswith(b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:")
    assert script.requests[2].endswith(b"\r\nx-said: a\r\ncontent-length: 4\r\n\r\nbody")


@pytest.mark.parametrize(
    "first",
    [
        [OK, None],
        [OK + OK],
        [OK + b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison"],
        [b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"],
        [b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok"],
    ],
)
async def test_a_connection_that_said_more_or_hung_up_is_not_used_again(http: Http1, first: list[bytes | None]) -> None:
    script = Script(first, [OK])
    async with scripted(script) as url:
        assert await post(http, url) == (200, b"ok")
        # So that what the server did last has arrived, whether or not the loop has looked.
        await asyncio.sleep(0.01)
        assert await post(http, url) == (200, b"ok")
    assert (script.connections, len(script.requests)) == (2, 2)


async def test_a_request_is_never_sent_twice(http: Http1) -> None:
    script = Script([OK], [None], [OK])
    async with scripted(script) as url:
        await post(http, url)
        with pytest.raises(Failure):
            await post(http, url)
        assert len(script.requests) == 2


async def test_a_connection_left_idle_is_closed() -> None:
    http, script = Http1(idle_seconds=0.02), Script([OK], [OK])
    async with scripted(script) as url:
        await post(http, url)
        await until(lambda: not any(http._idle.values()))
        await post(http, url)
    assert script.connections == 2
    await http.close()


async def test_an_answer_left_early_takes_its_connection_along(http: Http1) -> None:
    script = Script([b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"], [OK])
    async with scripted(script) as url:
        async with http.send("POST", url, {}, b"") as answer:
            assert await anext(aiter(answer.chunks())) == b"half"
        assert await post(http, url) == (200, b"ok")
    assert script.connections == 2


async def test_a_caller_who_gives_up_takes_the_connection_along(http: Http1) -> None:
    script = Script([], [OK])
    async with scripted(script) as url:
        with anyio.move_on_after(0.05):
            await post(http, url)
        assert await post(http, url) == (200, b"ok")
    assert script.connections == 2


async def test_who_sends_faster_than_we_read_has_to_wait(http: Http1) -> None:
    size = 64 * MAX_UNREAD
    script = Script([b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size, *[b"x" * MAX_UNREAD] * 64])
    async with scripted(script) as url, http.send("POST", url, {}, b"") as answer:
        for _ in range(100):
            await asyncio.sleep(0)
        first = await anext(aiter(answer.chunks()))
        held = sum(len(chunk) for chunk in answer._chunks)
        assert held < 3 * MAX_UNREAD
        assert len(first) + sum([len(chunk) async for chunk in answer.chunks()]) == size


@pytest.mark.parametrize(
    "headers",
    [{"x": "a\r\nx-agent-id: other"}, {"x": "a\nb"}, {"x": "a\rb"}, {"x\r\ny": "a"}, {"x": "ü"}, {"x": "a\x0bb"}],
)
def test_a_header_cannot_bring_others_along(headers: dict[str, str]) -> None:
    address = address_of("http://host/mcp")
    assert address is not None
    with pytest.raises(Failure, match="header") as refused:
        request_bytes("POST", address, headers, b"")
    assert "other" not in str(refused.value)


def test_where_a_request_ends_is_ours_to_say() -> None:
    address = address_of("https://host/a?b=c")
    assert address is not None
    headers = {"transfer-encoding": "chunked", "content-length": "0", "connection": "x", "host": "inner"}
    assert request_bytes("POST", address, headers, b"{}") == (
        b"POST /a?b=c HTTP/1.1\r\nhost: inner\r\ncontent-length: 2\r\n\r\n{}"
    )


@pytest.mark.parametrize(
    ("url", "host", "target"),
    [
        ("http://host", "host", "/"),
        ("http://host:80/x", "host", "/x"),
        ("https://Host:8443/x?y=%20", "host:8443", "/x?y=%20"),
        ("http://[::1]:80/", "[::1]", "/"),
        ("http://host?q", "host", "/?q"),
    ],
)
def test_a_plain_address_is_taken_apart(url: str, host: str, target: str) -> None:
    found = address_of(url)
    assert found is not None
    assert (found.host, found.target) == (host, target)


@pytest.mark.parametrize(
    "url",
    ["http://höst/", "http://host/a b", "http://host/ü", "ftp://host/", "http://u@host/", "http://host:x/", "host"],
)
def test_an_unusual_address_is_left_to_others(url: str) -> None:
    assert address_of(url) is None


async def test_what_is_unusual_goes_through_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    http = Either()
    async with scripted(Script([OK], [OK], [None])) as url:
        assert await post(http, f"{url}/ü") == (200, b"ok")
        monkeypatch.setenv("HTTP_PROXY", url.removesuffix("/mcp"))
        proxied = Either()
        assert await post(proxied, "http://nowhere.example/mcp") == (200, b"ok")
        with pytest.raises(Failure, match="RemoteProtocolError"):
            await post(http, f"{url}/ü")
        await proxied.close()
    await http.close()
    assert http.closed


def certificate(folder: Path) -> Path:
    """A certificate for 127.0.0.1 that vouches for itself, with its key, in one file."""
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
        stranger = Http1()
        with pytest.raises(Failure, match="certificate is not trusted"):
            await post(stranger, url)
        await stranger.close()
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        trusting = Http1()
        assert [await post(trusting, url), await post(trusting, url)] == [(200, b"ok")] * 2
        with pytest.raises(Failure, match="certificate is not trusted"):
            await post(trusting, url.replace("127.0.0.1", "localhost"))
        await trusting.close()
    assert len(script.requests) == 2


async def test_nothing_is_sent_once_it_is_closed(http: Http1) -> None:
    await http.close()
    with pytest.raises(Failure, match="shutting down"):
        await post(http, "http://127.0.0.1:1/")
