"""What the environment says of the platform."""

import re
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from microsoft_agents_a365.runtime import environment_utils as runtime
from microsoft_agents_a365.tooling.utils import utility as tooling

from frontdesk.agent365 import (
    InvalidArgument,
    get_mcp_platform_authentication_scope,
    get_observability_authentication_scope,
    is_development_environment,
)
from frontdesk.agent365.environment import ENVIRONMENT_VARIABLES, platform_base_url
from tests.requirements import shows

SHARED = "ea9ffc3e-8a23-4a7d-836d-234d7c7565c1/.default"
OBSERVED = "api://9b975845-388f-4429-889e-eab1ef63949c/.default"


@shows("A365-DISCOVER")
@pytest.mark.parametrize(
    ("environ", "developing"),
    [
        ({}, True),
        ({"PYTHON_ENVIRONMENT": "Production"}, False),
        ({"PYTHON_ENVIRONMENT": "dEvElOpMeNt", "ENVIRONMENT": "Production"}, True),
        ({"PYTHON_ENVIRONMENT": "", "ENVIRONMENT": "Production"}, False),
        ({"ENVIRONMENT": "Staging", "ASPNETCORE_ENVIRONMENT": "Development"}, False),
        ({"ASPNETCORE_ENVIRONMENT": "Production", "DOTNET_ENVIRONMENT": "Development"}, False),
        ({"DOTNET_ENVIRONMENT": "Production"}, False),
        ({"DOTNET_ENVIRONMENT": "Developmentt"}, False),
    ],
)
def test_the_first_variable_that_says_anything_counts(environ: dict[str, str], developing: bool) -> None:
    assert is_development_environment(environ) is developing


@shows("KEPT-15")
@pytest.mark.parametrize("said", [None, "", "Production", "dEvElOpMeNt", "Staging"])
@pytest.mark.parametrize("name", ["PYTHON_ENVIRONMENT", "ENVIRONMENT", "ASPNETCORE_ENVIRONMENT", "DOTNET_ENVIRONMENT"])
def test_the_environment_is_told_as_by_the_sdks_tooling(
    name: str, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ENVIRONMENT_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    if said is not None:
        monkeypatch.setenv(name, said)
    assert is_development_environment() is tooling.is_development_environment()
    if name == "PYTHON_ENVIRONMENT" and said:
        assert is_development_environment() is runtime.is_development_environment()
    # With nothing set the SDK contradicts itself, which the table of differences says.
    assert said or (tooling.is_development_environment(), runtime.is_development_environment()) == (True, False)


def test_scopes_have_their_defaults_and_variables() -> None:
    assert get_mcp_platform_authentication_scope({}) == [SHARED]
    assert get_mcp_platform_authentication_scope({"MCP_PLATFORM_AUTHENTICATION_SCOPE": ""}) == [SHARED]
    assert get_mcp_platform_authentication_scope({"MCP_PLATFORM_AUTHENTICATION_SCOPE": "a/b"}) == ["a/b"]
    assert get_observability_authentication_scope({}) == [OBSERVED]
    assert get_observability_authentication_scope({"A365_OBSERVABILITY_SCOPE_OVERRIDE": " "}) == [OBSERVED]
    assert get_observability_authentication_scope({"A365_OBSERVABILITY_SCOPE_OVERRIDE": " a/b\n"}) == ["a/b"]


@pytest.mark.parametrize(
    ("said", "base"),
    [
        ("", "https://agent365.svc.cloud.microsoft"),
        ("  ", "https://agent365.svc.cloud.microsoft"),
        ("https://host", "https://host"),
        ("https://host//", "https://host"),
        (" http://127.0.0.1:5309/base/ ", "http://127.0.0.1:5309/base"),
    ],
)
def test_the_address_has_no_slash_at_its_end(said: str, base: str) -> None:
    assert platform_base_url({"MCP_PLATFORM_ENDPOINT": said}) == base


@pytest.mark.parametrize(
    "said",
    ["host", "ftp://host", "https://", "https://user:secret@host", "https://host?a=b", "https://host#a", "http://[::1"],
)
def test_what_is_no_plain_address_is_refused_unquoted(said: str) -> None:
    with pytest.raises(InvalidArgument, match="MCP_PLATFORM_ENDPOINT must be") as refused:
        platform_base_url({"MCP_PLATFORM_ENDPOINT": said})
    assert "secret" not in str(refused.value)


@shows("A365-HOSTILE")
@given(st.text(st.characters()) | st.text(st.characters()).map(lambda text: f"https://host{text}"))
@example("https://ho st")
@example("https://host/a\r\nb")
@example("https://höst")
@settings(deadline=None)
def test_whatever_it_is_the_address_is_one_line_of_visible_text_or_refused(said: str) -> None:
    try:
        base = platform_base_url({"MCP_PLATFORM_ENDPOINT": said})
    except InvalidArgument:
        return
    assert re.fullmatch("[!-~]+", base)
    assert urlsplit(base).hostname
