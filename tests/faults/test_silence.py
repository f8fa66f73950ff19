"""Parts that fall silent: a database that hangs, a client that never finishes its request."""

import os
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.support.desk import Desk, open_desk
from tests.support.postgres import Postgres

SECONDS = 20


@contextmanager
def frozen(postgres: Postgres, name: str) -> Generator[None]:
    """Hold the database's processes still, so that it neither answers nor hangs up."""
    query = "SELECT pid FROM pg_stat_activity WHERE datname = %s"
    with psycopg.connect(postgres.url("postgres")) as connection:
        processes = [row[0] for row in connection.execute(query, (name,)).fetchall()]
    assert processes
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


def test_a_database_that_hangs_holds_up_neither_health_nor_the_stop(tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.create_database()
    name = url.rpartition("?")[0].rpartition("/")[2]
    with open_desk(tmp_path / "data", FRONTDESK_DATABASE_URL=url) as desk:
        connection = HTTPConnection(urlsplit(desk.url).netloc, timeout=SECONDS)
        connection.request("GET", "/api/health")
        assert connection.getresponse().read()
        with frozen(postgres, name):
            connection.request("GET", "/api/health")
            assert connection.getresponse().status == 503
            connection.close()
            desk.process.send_signal(signal.SIGTERM)
            assert desk.process.wait(SECONDS) == 0


@pytest.mark.parametrize(
    "said",
    [b"GET / HTTP/1.1\r\n" + b"x-filler: " + b"a" * 200_000, b"GET / HTTP/1.1\r\n" + b"x-f: a\r\n" * 20_000],
    ids=["one long header", "many headers"],
)
def test_a_head_without_an_end_is_cut_off(desk: Desk, said: bytes) -> None:
    address = urlsplit(desk.url)
    with socket.create_connection((address.hostname, address.port), timeout=SECONDS) as client:
        try:
            client.sendall(said)
            assert client.recv(1) == b""
        except ConnectionResetError:
            pass
    connection = HTTPConnection(address.netloc, timeout=SECONDS)
    connection.request("GET", "/api/health")
    assert connection.getresponse().status == 200
    connection.close()
