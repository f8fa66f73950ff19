"""Tests how the local platform is run, reloaded, watched, and made to fail on purpose."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from tests.requirements import shows
from tests.support.agent365 import APP, LocalPlatform, local_platform
from tests.support.desk import START_SECONDS, STOP_SECONDS, clean_environment, frontdesk_here

# `frontdesk platform serve`: its addresses, the settings that it prints, and one line for each request


MANIFEST = {"mcpServers": [{"mcpServerName": "Mail", "tools": [{"name": "send", "responseTemplate": "sent"}]}]}


@dataclass(slots=True)
class Running:
    """The running command, and its output once it has ended."""

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
    # It reads nothing of the installation, so wrong settings there do not matter.
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


# A changed file applies from the next request; an unreadable one changes nothing


def manifest(*names: str) -> dict[str, object]:
    return {"mcpServers": [{"mcpServerName": name} for name in names]}


def tools(text: str) -> str:
    return json.dumps([{"name": "send", "description": "Sends.", "responseTemplate": text}])


@shows("A365-LOCAL")
def test_a_manifest_that_changes_is_served_as_it_is_now() -> None:
    with local_platform(manifest("Mail")) as platform:
        assert platform.rpc("Calendar", "tools/list").status_code == 404
        platform.write(manifest("Mail", "Calendar"))
        assert [entry["mcpServerName"] for entry in platform.discover().json()["mcpServers"]] == ["Mail", "Calendar"]
        assert platform.rpc("Calendar", "tools/list").status_code == 200


@pytest.mark.parametrize("broken", ["{", "", "[]", '{"mcpServers": 5}', None])
def test_a_manifest_that_became_unreadable_is_kept_as_it_was_and_said_once(broken: str | None) -> None:
    with capture_logs() as logged, local_platform(manifest("Mail")) as platform:
        if broken is None:
            platform.manifest.unlink()
        else:
            platform.manifest.write_text(broken)
        for _ in range(3):
            assert platform.discover().json()["mcpServers"] == [{"mcpServerName": "Mail"}]
        health = platform.ask("GET", "/health")
        assert health["status"] == "stale"
        assert "ToolingManifest.json" in health["problems"][0]
        platform.write(manifest("Mail", "New"))
        assert len(platform.discover().json()["mcpServers"]) == 2
        assert platform.ask("GET", "/health")["status"] == "ok"
    assert [entry["event"] for entry in logged] == ["platform_manifest_kept", "platform_manifest_read"]


def test_mocks_beside_a_manifest_are_followed_too(tmp_path: Path) -> None:
    path = tmp_path / "ToolingManifest.json"
    path.write_text(json.dumps(manifest("Mail")))
    mocks = tmp_path / "mocks"
    mocks.mkdir()
    with local_platform(path) as platform:
        assert platform.rpc("Mail", "tools/list").json()["result"]["tools"] == []
        mock = mocks / "Mail.json"
        mock.write_text(tools("one"))
        assert platform.call("Mail", "send")["content"][0]["text"] == "one"
        mock.write_text(tools("another"))
        assert platform.call("Mail", "send")["content"][0]["text"] == "another"
        mock.write_text("[{")
        assert platform.call("Mail", "send")["content"][0]["text"] == "another"
        assert "mocks/Mail.json" in platform.ask("GET", "/health")["problems"][0]
        mock.unlink()
        assert platform.rpc("Mail", "tools/list").json()["result"]["tools"] == []


def test_a_state_outlives_a_change_of_the_manifest() -> None:
    states = [{"in": "start", "next": "open", "responseTemplate": "1"}, {"in": "open", "responseTemplate": "2"}]
    tool = {"name": "door", "description": "Opens.", "states": states}
    servers = [{"mcpServerName": "House", "tools": [tool]}]
    with local_platform({"mcpServers": servers}) as platform:
        assert platform.call("House", "door")["content"][0]["text"] == "1"
        platform.write({"mcpServers": [*servers, {"mcpServerName": "Mail"}]})
        assert platform.call("House", "door")["content"][0]["text"] == "2"


# A person who tests an agent sees the requests and their senders, reads the chats, and injects failures


CONTROL_MANIFEST = {
    "mcpServers": [
        {
            "mcpServerName": "Mail",
            "mcpServerUniqueName": "mail-1",
            "tools": [{"name": "send", "description": "Sends.", "responseTemplate": "sent"}],
        }
    ]
}
GUID = "0b9d4f6e-0000-4000-8000-0000000000aa"
CHAT = "/agents/real-time-threat-protection/chat-message"
SAID: dict[str, Any] = {
    "conversationId": "c-1",
    "messageId": "m-1",
    "userMessage": "secret words",
    "chatHistory": [
        {"id": "h-1", "role": "user", "content": "hello", "timestamp": "2026-11-01T10:00:00Z"},
        {"id": None, "role": "assistant", "content": "hi", "timestamp": None},
    ],
}


@pytest.fixture
def platform() -> Iterator[LocalPlatform]:
    with local_platform(CONTROL_MANIFEST) as running:
        yield running


@pytest.mark.parametrize(
    ("agent_id", "claims", "found"),
    [
        ("p-1", {"xms_par_app_azp": "p-1"}, "token xms_par_app_azp"),
        (APP, {}, "token appid"),
        ("z-1", {"azp": "z-1"}, "token azp"),
        ("123", {"appid": 123}, "token appid"),
        (GUID, {}, "turn context"),
        ("my-agent", {}, "application name"),
        (None, {}, "not sent"),
        ("", {}, "not sent"),
    ],
)
@shows("A365-LOCAL")
def test_the_log_says_where_the_agents_id_came_from(
    platform: LocalPlatform, agent_id: str | None, claims: dict[str, Any], found: str
) -> None:
    named = {} if agent_id is None else {"x-ms-agentid": agent_id}
    platform.discover(platform.headers(**claims) | named)
    seen = platform.requests()[-1]
    assert (seen["agentId"], seen["agentFrom"], seen["token"]) == (agent_id, found, "ok")


@shows("A365-LOCAL")
def test_the_log_has_what_a_request_said_but_no_token_and_no_message(platform: LocalPlatform) -> None:
    said = {
        "x-ms-correlation-id": "corr-1",
        "x-ms-channel-id": "msteams",
        "x-ms-subchannel-id": "sub-1",
        "user-agent": "Agent365SDK/2.0.0 (Linux; Python 3.12.1; OpenAI)",
        "x-request-id": "as-sent",
        "cookie": "hush",
    }
    headers = {**platform.headers(), **said}
    call = {"name": "send", "arguments": {"text": "secret words"}}
    platform.rpc("mail-1", "tools/call", call, headers)
    seen = platform.requests()[-1]
    assert seen["headers"]["x-request-id"] == "as-sent"
    assert (seen["headers"]["authorization"], seen["headers"]["cookie"]) == ("(not shown)", "(not shown)")
    told = (seen["method"], seen["path"], seen["status"], seen["server"], seen["rpcMethod"], seen["tool"])
    assert told == ("POST", "/agents/servers/mail-1", 200, "Mail", "tools/call", "send")
    assert (seen["correlationId"], seen["channelId"], seen["subchannelId"]) == ("corr-1", "msteams", "sub-1")
    assert (seen["userAgent"], seen["orchestrator"]) == (said["user-agent"], "OpenAI")
    written = json.dumps(platform.requests())
    assert "secret words" not in written
    assert headers["authorization"].removeprefix("Bearer ") not in written


@pytest.mark.parametrize(
    "name",
    [
        "x-user-auth-token",
        "x-ms-token-aad-access-token",
        "ocp-apim-subscription-key",
        "x-functions-key",
        "x-forwarded-authorization",
        "mcp-param-text",
        "x-whatever",
    ],
)
def test_the_log_shows_no_token_that_comes_under_another_name(platform: LocalPlatform, name: str) -> None:
    platform.discover({**platform.headers(), name: "s3cret-of-ada"})
    assert platform.requests()[-1]["headers"][name] == "(not shown)"
    assert "s3cret" not in json.dumps(platform.requests())


@pytest.mark.parametrize("name", ["x-ms-agentid", "x-ms-correlation-id", "user-agent", "x-request-id"])
@pytest.mark.parametrize("filling", [0, 990])
def test_the_log_shows_no_token_that_stands_where_none_belongs(
    platform: LocalPlatform, name: str, filling: int
) -> None:
    token = platform.token()
    platform.discover({**platform.headers(), name: f"{'a' * filling} {token}".strip()})
    written = json.dumps(platform.requests())
    assert not any(part in written for part in (*token.split("."), token[:8]))


def test_paths_are_shown_as_they_were_sent(platform: LocalPlatform) -> None:
    platform.http.get(f"{platform.url}/agents/%2e%2E%2fx%0a")
    assert (platform.requests()[-1]["path"], platform.requests()[-1]["status"]) == ("/agents/%2e%2E%2fx%0a", 404)


def test_the_log_is_asked_for_one_agent_or_for_the_last_ones_and_can_be_cleared(platform: LocalPlatform) -> None:
    for agent in ("ann", "bob", "ann"):
        platform.discover({**platform.headers(), "x-ms-agentid": agent})
    assert len(platform.requests("ann")) == 2
    assert [seen["agentId"] for seen in platform.ask("GET", "/requests?limit=2")["requests"]] == ["bob", "ann"]
    assert platform.ask("GET", "/requests?limit=0")["requests"] == []
    assert platform.http.get(f"{platform.url}/requests?limit=-1").status_code == 400
    platform.ask("DELETE", "/requests")
    assert platform.requests() == []


def test_the_last_thousand_requests_are_kept(platform: LocalPlatform) -> None:
    for number in range(1100):
        assert platform.http.get(f"{platform.url}/agents/v2/{number}/mcpServers").status_code == 401
    seen = platform.requests()
    assert (len(seen), seen[0]["path"], seen[-1]["path"]) == (
        1000,
        "/agents/v2/100/mcpServers",
        "/agents/v2/1099/mcpServers",
    )


@shows("A365-LOCAL")
def test_a_chat_message_is_taken_without_a_token_and_can_be_read(platform: LocalPlatform) -> None:
    found = platform.http.post(f"{platform.url}{CHAT}", json=SAID, headers={"x-ms-agentid": "ann"})
    assert (found.status_code, found.json()) == (200, {})
    assert platform.chats() == [{**SAID, "agentId": "ann"}]
    seen = platform.requests()[-1]
    assert (seen["token"], seen["agentFrom"]) == ("none", "application name")
    for number in range(250):
        platform.http.post(f"{platform.url}{CHAT}", json={**SAID, "messageId": str(number), "chatHistory": []})
    chats = platform.chats()
    assert (len(chats), chats[-1]["messageId"]) == (200, "249")


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"conversationId": " "}, "conversationId: "),
        ({"messageId": None}, "messageId: "),
        ({"userMessage": ""}, "userMessage: "),
        ({"chatHistory": None}, "chatHistory: "),
        ({"chatHistory": {}}, "chatHistory: "),
        ({"chatHistory": [{"role": "tool", "content": "x"}]}, "chatHistory.0.role: "),
        ({"chatHistory": [{"role": "user", "content": " "}]}, "chatHistory.0.content: "),
        ({"chatHistory": [{"role": "user", "content": "x", "timestamp": "then"}]}, "chatHistory.0.timestamp: "),
        ({"chatHistory": [5] * 1000}, "and 990 more"),
    ],
)
def test_a_chat_message_is_told_what_is_wrong_with_it(
    platform: LocalPlatform, changed: dict[str, object], where: str
) -> None:
    found = platform.http.post(f"{platform.url}{CHAT}", json={**SAID, **changed})
    assert found.status_code == 400
    assert where in found.json()["error_description"]
    assert platform.chats() == []


@shows("A365-LOCAL")
def test_discovery_fails_as_often_as_it_is_told_to(platform: LocalPlatform) -> None:
    platform.fault("discovery", status=503, body="<html>down", headers={"Retry-After": "7"}, times=2)
    for _ in range(2):
        found = platform.discover()
        assert (found.status_code, found.text, found.headers["retry-after"]) == (503, "<html>down", "7")
    assert platform.discover().status_code == 200
    assert platform.ask("GET", "/faults") == {}


def test_a_server_fails_under_both_its_names_until_it_is_mended(platform: LocalPlatform) -> None:
    platform.fault("server:mail-1", status=500)
    platform.fault("chat", status=204, body="dropped")
    assert platform.rpc("Mail", "tools/list").status_code == 500
    assert platform.rpc("mail-1", "tools/list").status_code == 500
    assert platform.http.post(f"{platform.url}{CHAT}", json=SAID).status_code == 204
    assert sorted(platform.ask("GET", "/faults")) == ["chat", "server:Mail"]
    assert platform.discover().status_code == 200
    platform.ask("PUT", "/faults", {"chat": None})
    assert list(platform.ask("GET", "/faults")) == ["server:Mail"]
    platform.mend()
    assert platform.rpc("Mail", "tools/list").status_code == 200


def test_the_platform_hangs_up_without_an_answer(platform: LocalPlatform) -> None:
    platform.fault("server:Mail", close=True, times=1)
    with pytest.raises(httpx2.RemoteProtocolError):
        platform.rpc("Mail", "tools/list")
    assert platform.rpc("Mail", "tools/list").status_code == 200
    assert [seen["status"] for seen in platform.requests()] == [None, 200]


def test_a_fault_comes_after_its_delay() -> None:
    slept: list[float] = []

    async def note(seconds: float) -> None:
        slept.append(seconds)

    with local_platform(CONTROL_MANIFEST, sleep=note) as platform:
        platform.fault("discovery", delayMs=1500)
        assert platform.discover().status_code == 503
    assert slept == [1.5]


@pytest.mark.parametrize(
    "faults",
    [
        {"nothing": {}},
        {"server:Nobody": {}},
        {"discovery": {"status": 99}},
        {"discovery": {"status": 600}},
        {"discovery": {"delayMs": 60_001}},
        {"discovery": {"times": 0}},
        {"discovery": {"stauts": 503}},
        {"discovery": {"headers": {"x": "a\r\nb: c"}}},
        {"discovery": {"headers": {"x y": "a"}}},
        {"discovery": {"headers": {"Content-Length": "5"}}},
        {"chat": {}, "discovery": 5},
        [],
    ],
)
def test_a_fault_that_makes_no_sense_changes_nothing(platform: LocalPlatform, faults: object) -> None:
    found = platform.http.put(f"{platform.url}/faults", json=faults)
    assert (found.status_code, found.json()["error"]) == (400, "invalid_request")
    assert platform.ask("GET", "/faults") == {}


def test_health_and_the_first_page_say_what_is_there(platform: LocalPlatform) -> None:
    health = platform.ask("GET", "/health")
    assert (health["status"], health["tokens"], health["problems"]) == ("ok", "claims", [])
    assert [(server["name"], server["tools"]) for server in health["servers"]] == [("Mail", ["send"])]
    page = platform.http.get(f"{platform.url}/")
    assert page.headers["content-type"].startswith("text/plain")
    assert "/agents/v2/<app id>/mcpServers" in page.text
    assert "Servers: Mail" in page.text
    assert platform.requests() == []
