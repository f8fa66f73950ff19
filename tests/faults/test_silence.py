"""Parts that fall silent: a database that hangs, a client that never finishes its request."""

import signal
import socket
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.desk import Desk, open_desk
from tests.support.postgres import Postgres

SECONDS = 30


def health(desk: Desk) -> int:
    with closing(HTTPConnection(urlsplit(desk.url).netloc, timeout=SECONDS)) as connection:
        connection.request("GET", "/api/health")
        return connection.getresponse().status


def test_a_database_that_hangs_holds_up_neither_health_nor_the_stop(tmp_path: Path, postgres: Postgres) -> None:
    with open_desk(tmp_path / "data", FRONTDESK_DATABASE_URL=postgres.create_database()) as desk:
        assert health(desk) == 200
        with postgres.frozen():
            assert health(desk) == 503
            desk.process.send_signal(signal.SIGTERM)
            assert desk.process.wait(SECONDS) == 0


@pytest.mark.parametrize(
    "said",
    [b"GET / HTTP/1.1\r\n" + b"x-filler: " + b"a" * 200_000, b"GET / HTTP/1.1\r\n" + b"x-f: a\r\n" * 20_000],
    ids=["one long header", "many headers"],
)
def test_a_head_without_an_end_is_cut_off(desk: Desk, said: bytes) -> None:
    address = urlsplit(desk.url)
    # Where we are still sending when it hangs up, we are told so as a reset or as a broken pipe.
    with (
        socket.create_connection((address.hostname, address.port), timeout=SECONDS) as client,
        suppress(ConnectionError),
    ):
        client.sendall(said)
        assert client.recv(1) == b""
    assert health(desk) == 200
