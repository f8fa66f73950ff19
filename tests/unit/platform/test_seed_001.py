"""Seed 001's unit tests, each under the name that its sentence has there; the other two are beside real servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from frontdesk.agent365 import (
    McpToolServerConfigurationService,
    ToolOptions,
    Utility,
    get_agent_id_from_token,
    get_application_name,
    reset_application_name_cache,
)
from tests.requirements import shows
from tests.support.gateways import jwt, turn

BLUEPRINT = "12345678-1234-1234-1234-123456789abc"
ENTRA = "11111111-2222-3333-4444-555555555555"
OTHER = "99999999-8888-7777-6666-555555555555"
OPTIONS = ToolOptions("OpenAI")


@pytest.fixture(autouse=True)
def pyproject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the project's file would be; nothing is known of it before or after."""
    monkeypatch.delenv("AGENT365_APPLICATION_NAME", raising=False)
    reset_application_name_cache()
    yield tmp_path / "pyproject.toml"
    reset_application_name_cache()


@pytest.fixture
def service() -> McpToolServerConfigurationService:
    return McpToolServerConfigurationService()


@shows("A365-SEED-U1-1")
def test_token_with_xms_par_app_azp_returns_blueprint_id_from_token() -> None:
    token = jwt(xms_par_app_azp=BLUEPRINT, appid=ENTRA, azp=OTHER)
    assert Utility.get_agent_id_from_token(token) == get_agent_id_from_token(token) == BLUEPRINT


@shows("A365-SEED-U1-2")
def test_no_xms_par_app_azp_token_with_appid_returns_entra_app_id() -> None:
    assert Utility.get_agent_id_from_token(jwt(appid=ENTRA, azp=OTHER)) == ENTRA


@shows("A365-SEED-U1-3")
def test_no_appid_token_with_azp_returns_azp_claim() -> None:
    assert Utility.get_agent_id_from_token(jwt(azp=OTHER)) == OTHER


@shows("A365-SEED-U1-4")
@pytest.mark.parametrize("claims", [{}, {"sub": ENTRA}, {"xms_par_app_azp": "", "appid": None, "azp": ""}])
def test_no_token_claims_returns_empty_string(claims: dict[str, object]) -> None:
    assert Utility.get_agent_id_from_token(jwt(claims)) == ""


@shows("A365-SEED-U1-5")
@pytest.mark.parametrize("token", [None, "", "   ", "not a token", "a.b", "a.b.c", "Bearer x", "é.é.é"])
def test_empty_or_invalid_token_returns_empty_string(token: str | None) -> None:
    assert Utility.get_agent_id_from_token(token) == ""


@shows("A365-SEED-U2-1")
def test_returns_env_var_when_set(pyproject: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyproject.write_text('[project]\nname = "of-the-file"\n')
    monkeypatch.setenv("AGENT365_APPLICATION_NAME", "of-the-variable")
    assert Utility.get_application_name() == get_application_name() == "of-the-variable"


@shows("A365-SEED-U2-2")
def test_returns_pyproject_toml_name_when_env_not_set(pyproject: Path) -> None:
    pyproject.write_text('[project]\nname = "of-the-file"\n')
    assert Utility.get_application_name() == "of-the-file"


@shows("A365-SEED-U2-3")
def test_returns_none_when_nothing_available() -> None:
    assert Utility.get_application_name() is None


@shows("A365-SEED-U2-4")
def test_caches_the_result(pyproject: Path) -> None:
    pyproject.write_text('[project]\nname = "of-the-file"\n')
    assert Utility.get_application_name() == "of-the-file"
    pyproject.unlink()
    assert Utility.get_application_name() == "of-the-file"


@shows("A365-SEED-U3-1")
def test_turn_context_with_agentic_app_blueprint_id_returns_blueprint_id(
    service: McpToolServerConfigurationService,
) -> None:
    assert service._resolve_agent_id_for_header(jwt(xms_par_app_azp=OTHER, appid=ENTRA), asks(BLUEPRINT)) == BLUEPRINT


@shows("A365-SEED-U3-2")
@pytest.mark.parametrize("missing", [None, turn(), turn(from_=None), turn(from_=object())])
def test_no_blueprint_id_token_with_claims_returns_token_claim(
    missing: object, service: McpToolServerConfigurationService
) -> None:
    assert service._resolve_agent_id_for_header(jwt(appid=ENTRA), missing) == ENTRA
    assert service._resolve_agent_id_for_header(jwt(appid=ENTRA), asks("")) == ENTRA


@shows("A365-SEED-U3-3")
def test_no_claims_returns_application_name(
    service: McpToolServerConfigurationService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT365_APPLICATION_NAME", "travel-desk")
    assert service._resolve_agent_id_for_header(jwt(sub="somebody"), None) == "travel-desk"


@shows("A365-SEED-U3-4")
def test_nothing_available_returns_none(service: McpToolServerConfigurationService) -> None:
    assert service._resolve_agent_id_for_header("opaque", None) is None


@shows("A365-SEED-U4-1")
def test_includes_x_ms_agentid_when_identifier_available(service: McpToolServerConfigurationService) -> None:
    assert service._prepare_gateway_headers(jwt(appid=ENTRA), OPTIONS)["x-ms-agentid"] == ENTRA
    assert service._prepare_gateway_headers(jwt(appid=ENTRA), OPTIONS, asks(BLUEPRINT))["x-ms-agentid"] == BLUEPRINT


@shows("A365-SEED-U4-2")
def test_omits_header_when_no_identifier_available(service: McpToolServerConfigurationService) -> None:
    prepared = service._prepare_gateway_headers("opaque", OPTIONS)
    assert "x-ms-agentid" not in prepared
    assert prepared["Authorization"] == "Bearer opaque"


def asks(blueprint: str) -> object:
    """A turn that comes from an agent."""
    return turn(from_=type("Sender", (), {"agentic_app_blueprint_id": blueprint})())
