"""The local platform takes whatever is thrown at it, and answers this machine alone."""

import json
import socket
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.agent365.local_platform import delay_seconds, fill_template
from tests.requirements import shows
from tests.support.platform import SECONDS, LocalPlatform, local_platform

TOOLS = [{"name": "send", "description": "Sends.", "responseTemplate": "sent to {{to}}"}]
MANIFEST = {"mcpServers": [{"mcpServerName": "Mail", "tools": TOOLS}]}
ENDPOINTS = ["/agents/servers/Mail", "/agents/real-time-threat-protection/chat-message", "/oauth2/v2.0/token"]
BROKEN = [
    b"",
    b"null",
    b"[]",
    b"\xff\xfe",
    b"{",
    b"[" * 100_000,
    b'{"jsonrpc":"2.0","id":1,"method":5}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":[]}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send","arguments":[]}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}',
    b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
]
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def platform() -> Iterator[LocalPlatform]:
    with local_platform(MANIFEST) as running:
        yield running


@pytest.mark.parametrize("body", BROKEN)
@pytest.mark.parametrize("path", [*ENDPOINTS, "/faults"])
@shows("A365-LOCAL")
def test_a_broken_body_is_refused_and_nothing_breaks(platform: LocalPlatform, path: str, body: bytes) -> None:
    method = "PUT" if path == "/faults" else "POST"
    found = platform.http.request(method, f"{platform.url}{path}", content=body, headers={**platform.headers(), **JSON})
    assert found.status_code in {200, 400}
    assert found.status_code == 400 or "error" in found.json()
    assert platform.requests()


@pytest.mark.parametrize("path", [*ENDPOINTS, "/faults"])
def test_a_huge_body_is_refused(platform: LocalPlatform, path: str) -> None:
    method = "PUT" if path == "/faults" else "POST"
    body = b" " * (4 * 1024 * 1024 + 1)
    found = platform.http.request(method, f"{platform.url}{path}", content=body, headers={**platform.headers(), **JSON})
    assert found.status_code == 413


def test_a_head_without_end_is_cut_off(platform: LocalPlatform) -> None:
    port = int(platform.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n")
        try:
            for _ in range(100):
                connection.sendall(b"x-filler: " + b"x" * 8000 + b"\r\n")
            assert connection.recv(1) == b""
        except (ConnectionResetError, BrokenPipeError):
            pass


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1:80", "", "localhost.evil.example"]
)
def test_a_host_that_is_not_this_machine_is_not_answered(platform: LocalPlatform, host: str) -> None:
    for path in ("/requests", "/agents/v2/x/mcpServers", "/oauth2/v2.0/token"):
        assert platform.http.get(f"{platform.url}{path}", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "localhost:5309", "127.0.0.1", "[::1]:5309"])
def test_every_name_of_this_machine_is(platform: LocalPlatform, host: str) -> None:
    assert platform.http.get(f"{platform.url}/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(("method", "path"), [("GET", "/requests"), ("PUT", "/faults"), ("GET", "/chats")])
def test_a_page_from_elsewhere_controls_nothing(platform: LocalPlatform, method: str, path: str) -> None:
    for origin, status in (("https://evil.example", 403), ("null", 403), ("http://localhost:3000", 200)):
        found = platform.http.request(method, f"{platform.url}{path}", headers={"origin": origin}, content=b"{}")
        assert found.status_code == status


@pytest.mark.parametrize(
    "path", ["/agents/v2//mcpServers", "/agents", "//", "/agents/servers/", "/x/y/z", "/%00", "/faults/"]
)
def test_other_addresses_are_not_found(platform: LocalPlatform, path: str) -> None:
    assert platform.http.get(f"{platform.url}{path}").status_code == 404


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/health"), ("GET", ENDPOINTS[1]), ("GET", ENDPOINTS[2]), ("POST", "/faults")]
)
def test_another_method_is_told_which_there_are(platform: LocalPlatform, method: str, path: str) -> None:
    found = platform.http.request(method, f"{platform.url}{path}")
    assert found.status_code == 405
    assert found.headers["allow"] in found.json()["error_description"]


def test_headers_as_long_as_can_be_are_remembered_in_part(platform: LocalPlatform) -> None:
    long = {"x-ms-agentid": "a" * 20_000, "user-agent": "(" * 20_000, "x-ms-correlation-id": "ä".encode() * 100}
    platform.discover({**platform.headers(), **{name: str(value) for name, value in long.items()}})
    seen = platform.requests()[-1]
    assert (len(seen["agentId"]), seen["orchestrator"]) == (1000, None)
    assert max(map(len, seen["headers"].values())) <= 1000


@settings(max_examples=200)
@given(
    st.text(alphabet="{} abA\n", max_size=60),
    st.dictionaries(st.text("abA ", max_size=2), st.text("{}ab", max_size=8) | st.integers() | st.none()),
)
def test_whatever_the_template_every_placeholder_is_filled_or_named(template: str, values: dict[str, object]) -> None:
    filled = fill_template(template, values)
    assert fill_template(template, {}).missing or filled.text == template
    assert fill_template(template.replace("{", "(").replace("}", ")"), values).missing == ()
    assert set(filled.missing) <= set(fill_template(template, {}).missing)


def test_a_value_is_not_expanded_again() -> None:
    assert fill_template("{{a}}", {"a": "{{b}}", "b": "no"}).text == "{{b}}"
    assert fill_template("{{{{a}}}}", {"a": "b", "b": "no"}).text == "{{b}}"
    assert json.loads(fill_template("{{a}}", {"a": {"x": 1}}).text) == {"x": 1}


@pytest.mark.parametrize(("asked", "waited"), [(-5, 0.0), (0, 0.0), (250, 0.25), (10**12, 60.0)])
def test_no_delay_is_longer_than_a_minute(asked: int, waited: float) -> None:
    assert delay_seconds(asked) == waited
