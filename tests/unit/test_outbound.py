"""What we say of ourselves on requests that leave."""

import base64
import json
from pathlib import Path

import pytest

from frontdesk.identity import outbound
from frontdesk.identity.model import Caller
from tests.requirements import shows


def token(**claims: object) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({}, claims)]
    return ".".join([*parts, "sig"])


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"xms_par_app_azp": "blueprint", "appid": "app", "azp": "azp"}, "blueprint"),
        ({"appid": "app", "azp": "azp"}, "app"),
        ({"azp": "azp"}, "azp"),
        ({"sub": "x"}, ""),
        ({"appid": 123, "azp": "azp"}, "azp"),
    ],
)
def test_claims_are_tried_in_order(claims: dict[str, object], expected: str) -> None:
    assert outbound.agent_id_from_token(token(**claims)) == expected


@pytest.mark.parametrize("broken", [None, "", " ", "x", "a.b.c", "Bearer x.y.z", "é.é.é"])
def test_a_broken_token_says_nothing(broken: str | None) -> None:
    assert outbound.agent_id_from_token(broken) == ""


@shows("ID-OUTBOUND")
def test_turn_beats_token_beats_application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.joinpath("pyproject.toml").write_text('[project]\nname = "from-file"  # a comment\n')
    monkeypatch.chdir(tmp_path)
    told = token(appid="app")
    assert outbound.platform_agent_id(told, "blueprint", "named") == "blueprint"
    assert outbound.platform_agent_id(told, None, "named") == "app"
    assert outbound.platform_agent_id(None, None, "named") == "named"
    assert outbound.platform_agent_id(None) == "from-file"
    tmp_path.joinpath("pyproject.toml").unlink()
    assert outbound.platform_agent_id(None) == "from-file", "the file is read once"


@pytest.mark.parametrize(
    "content", ["", "project = 'x'", "[project]", "[project]\nname = ''", "[tool]\nname = 'x'", "not toml ["]
)
def test_a_header_that_would_be_empty_is_left_out(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    folder.joinpath("pyproject.toml").write_text(content)
    monkeypatch.chdir(folder)
    assert outbound.headers() == {}


def test_caller_and_request_go_along(tmp_path: Path) -> None:
    said = outbound.headers(Caller("r-1", agent_id="agent-1"), application_name="naïve\r\nname")
    assert said == {"x-ms-agentid": "na ve  name", "x-agent-id": "agent-1", "x-request-id": "r-1"}


def test_the_trace_goes_along() -> None:
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415

    with TracerProvider().get_tracer("test").start_as_current_span("outer") as span:
        said = outbound.headers(Caller("r-1"))
    assert format(span.get_span_context().trace_id, "032x") in said["traceparent"]
