"""The platform's addresses."""

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.agent365 import (
    InvalidArgument,
    build_mcp_server_url,
    get_chat_history_endpoint,
    get_mcp_base_url,
    get_tooling_gateway_for_digital_worker,
)
from frontdesk.mcp_client.connections import PLAIN_URL
from tests.requirements import shows

BASE = "https://agent365.svc.cloud.microsoft"
BASES = st.sampled_from(["", "https://host", "http://127.0.0.1:5309/", "https://host/a/b/"])
NAMES = st.text(st.characters(), max_size=300) | st.sampled_from(
    ["..", ".", "../x?y=1", "%2e%2e", "a/b", "a\\b", "a#b", "a?b", "@evil", "//evil", "a\r\nb", "\x00", "\ud800", " "]
)


def test_each_purpose_has_its_address() -> None:
    assert get_tooling_gateway_for_digital_worker("app", {}) == f"{BASE}/agents/v2/app/mcpServers"
    assert get_mcp_base_url({}) == f"{BASE}/agents/servers"
    assert build_mcp_server_url("mail", {}) == f"{BASE}/agents/servers/mail"
    assert get_chat_history_endpoint({}) == f"{BASE}/agents/real-time-threat-protection/chat-message"


@shows("A365-HOSTILE")
@given(NAMES, BASES)
@settings(deadline=None)
def test_whatever_goes_into_an_address_stays_one_part_of_its_path(name: str, base: str) -> None:
    environ = {"MCP_PLATFORM_ENDPOINT": base}
    start = base.rstrip("/") or BASE
    for make, before, after in (
        (get_tooling_gateway_for_digital_worker, "/agents/v2/", "/mcpServers"),
        (build_mcp_server_url, "/agents/servers/", ""),
    ):
        try:
            url = make(name, environ)
        except InvalidArgument:
            assert not name.strip(".") or len(name) > 256
            continue
        parts, expected = urlsplit(url), urlsplit(f"{start}{before}name{after}")
        assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == (expected.scheme, expected.netloc, "", "")
        assert parts.path.count("/") == expected.path.count("/")
        part = parts.path.removeprefix(urlsplit(start).path + before).removesuffix(after)
        assert unquote(part) == name.encode(errors="replace").decode()
        assert PLAIN_URL.fullmatch(url)


@pytest.mark.parametrize("name", ["", ".", "..", "." * 300, "x" * 257])
def test_what_cannot_be_a_part_of_a_path_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match="agentic_app_id must be 1 to 256 characters"):
        get_tooling_gateway_for_digital_worker(name, {})
    with pytest.raises(ValueError, match="the name of an MCP server must be"):
        build_mcp_server_url(name, {})
