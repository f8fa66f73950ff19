"""Which token a server wants."""

import pytest

from frontdesk.agent365 import MCPServerConfig, resolve_token_scope_for_server
from frontdesk.agent365.model import is_v2_server
from tests.requirements import shows

SHARED = "ea9ffc3e-8a23-4a7d-836d-234d7c7565c1"


def server(audience: str | None, scope: str | None = None) -> MCPServerConfig:
    return MCPServerConfig("mail", "mail", audience=audience, scope=scope)


@shows("A365-TOKENS")
@pytest.mark.parametrize(
    "audience",
    [None, "default", " Default ", SHARED, SHARED.upper(), f" {SHARED}\n", f"api://{SHARED}", f"API://{SHARED}"],
)
def test_servers_of_the_first_kind_share_a_scope(audience: str | None) -> None:
    assert not is_v2_server(server(audience, "Mail.Read"))
    assert resolve_token_scope_for_server(server(audience, "Mail.Read"), {}) == f"{SHARED}/.default"
    moved = {"MCP_PLATFORM_AUTHENTICATION_SCOPE": "elsewhere/.default"}
    assert resolve_token_scope_for_server(server(audience), moved) == "elsewhere/.default"


@shows("A365-TOKENS")
@pytest.mark.parametrize(
    ("audience", "scope", "wanted"),
    [
        (" API://Mail ", "Mail.Read", "api://mail/Mail.Read"),
        ("api://mail", None, "api://mail/.default"),
        ("api://mail", "", "api://mail/.default"),
        (f"{SHARED}x", None, f"{SHARED}x/.default"),
    ],
)
def test_any_other_audience_has_a_scope_of_its_own(audience: str, scope: str | None, wanted: str) -> None:
    assert is_v2_server(server(audience, scope))
    assert resolve_token_scope_for_server(server(audience, scope), {}) == wanted
