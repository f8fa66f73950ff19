"""Whoever tests an agent sees who asked for what, reads the chats, and breaks things on purpose."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.requirements import shows
from tests.support.platform import APP, LocalPlatform, local_platform

MANIFEST = {
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
    with local_platform(MANIFEST) as running:
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

    with local_platform(MANIFEST, sleep=note) as platform:
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
