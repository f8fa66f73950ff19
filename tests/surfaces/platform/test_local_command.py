"""`frontdesk platform serve` as it is run: where it is open, what to set, and one line for each request."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.requirements import shows
from tests.support.desk import START_SECONDS, STOP_SECONDS, clean_environment, frontdesk_here

MANIFEST = {"mcpServers": [{"mcpServerName": "Mail", "tools": [{"name": "send", "responseTemplate": "sent"}]}]}


@dataclass(slots=True)
class Running:
    """The command while it runs, and what it has written once it has ended."""

    said: list[str]
    url: str = ""
    logged: str = ""
    code: int | None = None


@contextmanager
def serving(folder: Path, *arguments: str, **settings: str) -> Generator[Running]:
    process = subprocess.Popen(
        [sys.executable, "-m", "frontdesk", "platform", "serve", "--port", "0", *arguments],
        cwd=folder,
        env=clean_environment(**settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        running = Running([process.stdout.readline().rstrip() for _ in range(5)])
        running.url = running.said[3].partition("=")[2]
        yield running
        process.send_signal(signal.SIGINT)
        running.logged = process.communicate(timeout=STOP_SECONDS)[1]
        running.code = process.returncode
    finally:
        process.kill()
        process.communicate(timeout=START_SECONDS)


@shows("A365-LOCAL")
def test_the_command_says_where_it_is_open_what_to_set_and_who_asks(tmp_path: Path) -> None:
    below = tmp_path / "agent"
    below.mkdir()
    (tmp_path / "ToolingManifest.json").write_text(json.dumps(MANIFEST))
    # Nothing of the installation is read, so what is wrong with its settings does not matter.
    with serving(below, FRONTDESK_PORT="nonsense", FRONTDESK_DATA=str(tmp_path / "data")) as running:
        assert re.fullmatch(r"export MCP_PLATFORM_ENDPOINT=http://127\.0\.0\.1:\d+", running.said[3])
        form = {"grant_type": "client_credentials", "client_id": "app", "scope": "api://mail/.default"}
        token = httpx2.post(f"{running.url}/oauth2/v2.0/token", data=form).json()["access_token"]
        headers = {"authorization": f"Bearer {token}", "x-ms-agentid": "agent\x9b1"}
        raw = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
        assert httpx2.get(f"{running.url}/agents/v2/x/mcpServers", headers=raw).status_code == 401
    assert running.code == 0
    assert "1 server; tokens: claims" in running.said[1]
    assert "description: is empty" in running.logged
    line = next(line for line in running.logged.splitlines() if "/agents/v2/x/mcpServers" in line)
    assert "platform_request" in line
    assert "status=401" in line
    assert "agent_id=agent1" in line
    assert token not in running.logged
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "example.com", "::"])
def test_it_listens_on_this_machine_alone(tmp_path: Path, host: str) -> None:
    done = frontdesk_here("platform", "serve", "--host", host, data=tmp_path / "data")
    assert done.returncode == 2
    assert f"--host {host} is refused" in done.stderr


def test_without_a_manifest_it_says_how_to_make_one(tmp_path: Path) -> None:
    done = frontdesk_here("platform", "serve", data=tmp_path / "data")
    assert done.returncode == 1
    assert "There is no ToolingManifest.json here" in done.stderr
    example = re.search(r"\{.*\}", done.stderr)
    assert example is not None
    assert json.loads(example[0])["mcpServers"]


def test_a_manifest_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    done = frontdesk_here("platform", "serve", "broken.json", data=tmp_path / "data")
    assert done.returncode == 1
    assert "it is not JSON" in done.stderr


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    (tmp_path / "ToolingManifest.json").write_text(json.dumps(MANIFEST))
    with serving(tmp_path) as running:
        done = frontdesk_here("platform", "serve", "--port", running.url.rpartition(":")[2], data=tmp_path / "data")
    assert done.returncode == 2
    assert "choose another port (--port)" in done.stderr
