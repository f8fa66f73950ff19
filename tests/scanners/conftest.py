"""Fixtures: a server that requires credentials, its issuer, and calls from outside; one for all tests here."""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.desk import Desk, frontdesk_here, open_desk
from tests.support.issuer import Issuer, open_issuer

# A Frontdesk that requires credentials, the issuer it trusts, and calls of a stranger


ANSWER_SECONDS = 15


@dataclass(frozen=True, slots=True)
class Installation:
    """A running server and its issuer."""

    desk: Desk
    issuer: Issuer

    def token(self, **said: Any) -> str:
        """A token that this server accepts, with these changes."""
        usual: dict[str, Any] = {"sub": "alice", "aud": self.desk.mcp}
        return self.issuer.token(**usual | said)

    def send_call(self, token: str) -> httpx2.Response:
        return send_call(self.desk.mcp, {"authorization": f"Bearer {token}"})

    def keys(self, *arguments: str) -> str:
        """The output of `frontdesk keys`."""
        done = frontdesk_here("keys", *arguments, data=self.desk.data)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@contextmanager
def open_installation(data: Path) -> Generator[Installation]:
    """A server that accepts keys and the tokens of one issuer, for its own resource URLs only."""
    with open_issuer() as issuer:
        trusted = json.dumps([{"issuer": issuer.url, "jwks_url": issuer.jwks_url}])
        with open_desk(data, FRONTDESK_REQUIRE_AUTH="true", FRONTDESK_ISSUERS=trusted) as desk:
            yield Installation(desk, issuer)


def send_call(url: str, headers: Mapping[str, str]) -> httpx2.Response:
    """Ask the server for the caller's identity."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "whoami"}}
    accept = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    return httpx2.post(url, json=call, headers={**accept, **headers}, timeout=ANSWER_SECONDS)


def who(response: httpx2.Response) -> Mapping[str, Any]:
    """The identity that the server gives a caller."""
    assert response.status_code == 200, response.text
    return response.json()["result"]["structuredContent"]


# The installation for the scanners: one for all of them, as none of them changes it


@pytest.fixture(scope="package")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Generator[Installation]:
    with open_installation(tmp_path_factory.mktemp("installation") / "data") as opened:
        yield opened
