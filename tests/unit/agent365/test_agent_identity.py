"""Tests which agent a token, a turn or the environment names; with the unit tests of seed 001."""

import os
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.agent365 import (
    McpToolServerConfigurationService,
    ToolOptions,
    Utility,
    get_agent_id_from_token,
    get_app_id_from_token,
    get_application_name,
    reset_application_name_cache,
    resolve_agent_identity,
)
from frontdesk.agent365.agent_identity import activity_id, blueprint_id, channel_names
from tests.requirements import shows
from tests.support.agent365 import jwt, turn

# The caller that a token or a turn names


NOBODY = "00000000-0000-0000-0000-000000000000"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
CLAIMS = st.dictionaries(st.sampled_from(["xms_par_app_azp", "appid", "azp", "sub"]), JSON)


class Agentic:
    """The activity of an agentic request, as hosts make it."""

    def __init__(self, instance: object, *, agentic: bool = True) -> None:
        self.instance = instance
        self.agentic = agentic

    def is_agentic_request(self) -> bool:
        return self.agentic

    def get_agentic_instance_id(self) -> object:
        if isinstance(self.instance, Exception):
            raise self.instance
        return self.instance


@shows("A365-HOSTILE")
@given(JSON | CLAIMS)
@settings(deadline=None)
def test_whatever_a_token_claims_an_id_is_one_line_of_plain_text_or_empty(claims: object) -> None:
    for found in (get_agent_id_from_token(jwt(claims)), get_app_id_from_token(jwt(claims))):
        assert type(found) is str
        assert len(found) <= 256
        assert found == "" or (found.isascii() and found.isprintable() and found == found.strip())


@shows("A365-HOSTILE")
@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
@settings(deadline=None)
def test_whatever_a_token_is_reading_it_raises_nothing(token: str) -> None:
    for text in (token, f"{token}.{token}.{token}", f"e30.{token}."):
        assert isinstance(get_agent_id_from_token(text), str)
        assert isinstance(get_app_id_from_token(text), str)


@pytest.mark.parametrize("claim", [123, True, 1.5, ["a"], {"a": "b"}, "a\r\nb", "ü", "x" * 257, "\x00", " "])
def test_a_claim_that_no_header_can_hold_gives_way_to_the_next(claim: object) -> None:
    assert get_agent_id_from_token(jwt(xms_par_app_azp=claim, appid=claim, azp="azp")) == "azp"


def test_an_expired_token_still_says_who() -> None:
    assert get_agent_id_from_token(jwt(appid="app", exp=1)) == "app"


def test_claims_nested_too_deeply_to_read_say_nothing() -> None:
    head = "e30"
    deep = "W1tb" * 4_000
    assert get_agent_id_from_token(f"{head}.{deep}.x") == ""


@pytest.mark.parametrize("token", [None, "", "  "])
def test_without_a_token_the_application_is_a_guid_of_zeros(token: str | None) -> None:
    assert get_app_id_from_token(token) == NOBODY


def test_the_application_is_appid_before_azp_and_never_the_blueprint() -> None:
    assert get_app_id_from_token(jwt(xms_par_app_azp="blueprint", appid="app", azp="azp")) == "app"
    assert get_app_id_from_token(jwt(xms_par_app_azp="blueprint", azp="azp")) == "azp"
    assert get_app_id_from_token(jwt(xms_par_app_azp="blueprint")) == ""
    assert get_app_id_from_token("not a token") == ""


@shows("A365-DISCOVER")
@pytest.mark.parametrize(
    ("context", "agent"),
    [
        (turn(), "app"),
        (None, "app"),
        (type("Turn", (), {"activity": None})(), "app"),
        (type("Turn", (), {"activity": Agentic("instance")})(), "instance"),
        (type("Turn", (), {"activity": Agentic("instance", agentic=False)})(), "app"),
        (type("Turn", (), {"activity": Agentic(None)})(), ""),
        (type("Turn", (), {"activity": Agentic(5)})(), ""),
        (type("Turn", (), {"activity": Agentic(RuntimeError("no"))})(), "app"),
    ],
)
def test_the_servers_asked_for_are_those_of_the_turns_instance_else_of_the_token(context: object, agent: str) -> None:
    assert resolve_agent_identity(context, jwt(appid="app")) == agent


# Turns, whose class is not ours


class Channel(str, Enum):  # noqa: UP042 - the kind that hosts have, which says something else
    """An enum as hosts have it: equal to a text, but printed differently."""

    TEAMS = "msteams"


class Broken:
    """A property that raises."""

    @property
    def activity(self) -> object:
        raise TypeError("no activity now")


def sender(**attributes: object) -> SimpleNamespace:
    return SimpleNamespace(**attributes)


@shows("A365-AGENTID")
@pytest.mark.parametrize(
    "context",
    [
        turn(from_=sender(agentic_app_blueprint_id="blueprint")),
        turn(from_property=sender(agentic_app_blueprint_id="blueprint")),
        turn(from_property=sender(agenticAppBlueprintId="blueprint")),
        turn(from_=None, from_property=sender(agentic_app_blueprint_id=" blueprint ")),
        turn(from_=sender(agentic_app_blueprint_id=5, agenticAppBlueprintId="blueprint")),
    ],
)
def test_the_blueprint_is_found_by_either_name_of_the_sender(context: object) -> None:
    assert blueprint_id(context) == "blueprint"


@pytest.mark.parametrize("context", [None, 5, "turn", turn(), Broken(), turn(from_=Broken()), SimpleNamespace()])
def test_a_turn_with_parts_missing_says_nothing(context: object) -> None:
    assert (blueprint_id(context), activity_id(context), channel_names(context)) == (None, None, (None, None))


@pytest.mark.parametrize(
    ("activity", "said"),
    [
        ({"channel_id": "msteams"}, ("msteams", None)),
        ({"channel_id": "msteams:copilot"}, ("msteams", "copilot")),
        ({"channel_id": "msteams:"}, ("msteams", None)),
        ({"channel_id": ":copilot"}, (None, "copilot")),
        ({"channel_id": "msteams:copilot", "channel_id_sub_channel": "own"}, ("msteams", "own")),
        ({"channel_id": Channel.TEAMS}, ("msteams", None)),
        ({"channel_id": 5, "channel_id_sub_channel": 5}, (None, None)),
        ({"channel_id": "ms\r\nteams"}, ("ms teams", None)),
    ],
)
def test_the_channel_and_the_one_within_are_told_apart(
    activity: dict[str, object], said: tuple[str | None, str | None]
) -> None:
    assert channel_names(turn(**activity)) == said


def test_an_id_of_a_turn_is_made_fit_for_a_header() -> None:
    assert activity_id(turn(id="a\r\nb: c")) == "a b: c"
    assert activity_id(turn(id="é" * 300)) == "e" * 256
    assert activity_id(turn(id="中")) is None


# The name of the running application


SECONDS = 60
THREADS = """
import sys, threading
from frontdesk.agent365 import get_application_name
opened = []
sys.addaudithook(lambda event, args: opened.append(args[0]) if event == "open" else None)
together = threading.Barrier(8)
def ask():
    together.wait()
    for _ in range(20):
        get_application_name({})
threads = [threading.Thread(target=ask) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sum(str(path).endswith("pyproject.toml") for path in opened), get_application_name({}))
"""


@pytest.fixture
def pyproject(tmp_path: Path) -> Iterator[Path]:
    reset_application_name_cache()
    yield tmp_path / "pyproject.toml"
    reset_application_name_cache()


@pytest.mark.usefixtures("pyproject")
def test_the_variable_is_looked_at_each_time_and_beats_what_was_read(pyproject: Path) -> None:
    pyproject.write_text('[project]\nname = "of-the-file"\n')
    assert get_application_name({}) == "of-the-file"
    assert get_application_name({"AGENT365_APPLICATION_NAME": "one"}) == "one"
    assert get_application_name({"AGENT365_APPLICATION_NAME": "two"}) == "two"
    assert get_application_name({"AGENT365_APPLICATION_NAME": ""}) == "of-the-file"


@pytest.mark.usefixtures("pyproject")
def test_that_there_is_no_name_is_kept_too_until_it_is_reset(pyproject: Path) -> None:
    assert get_application_name({}) is None
    pyproject.write_text('[project]\nname = "late"\n')
    assert get_application_name({}) is None
    reset_application_name_cache()
    assert get_application_name({}) == "late"


@pytest.mark.usefixtures("pyproject")
@pytest.mark.parametrize(
    ("content", "name"),
    [
        ('[project]\nname = "double"\n', "double"),
        ("[project]\nname = 'single' # why\n", "single"),
        ('\ufeff[project]\r\nname = "windows"\r\n', "windows"),
        ('[project]\nnames = "a"\nname_x = "b"\n', None),
        ('[tool.project]\nname = "a"\n[build-system]\nname = "b"\n', None),
        ('[project]\nname = ""\n', None),
        ("[project]\nname = 5\n", None),
        ("project = 5\n", None),
        ("[project\nname = 'broken'\n", None),
        ("", None),
    ],
)
def test_only_the_name_of_the_project_counts(content: str, name: str | None, pyproject: Path) -> None:
    pyproject.write_text(content, encoding="utf-8", newline="")
    assert get_application_name({}) == name


@pytest.mark.usefixtures("pyproject")
def test_a_file_that_cannot_be_read_names_nothing(pyproject: Path) -> None:
    pyproject.mkdir()
    assert get_application_name({}) is None
    reset_application_name_cache()
    pyproject.rmdir()
    pyproject.write_bytes(b"\xff\xfe\x00")
    assert get_application_name({}) is None


@pytest.mark.usefixtures("pyproject")
def test_a_folder_that_is_gone_names_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert get_application_name({}) is None


@pytest.mark.usefixtures("pyproject")
@shows("A365-AGENTID")
def test_eight_threads_that_come_at_once_open_the_file_once(pyproject: Path) -> None:
    pyproject.write_text('[project]\nname = "many"\n')
    # A process of its own: an audit hook cannot be removed.
    run = subprocess.run(
        [sys.executable, "-c", THREADS],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
        env=dict(os.environ),
        cwd=pyproject.parent,
    )
    assert run.stdout.split() == ["1", "many"], run.stderr


# Seed 001's unit tests, each under the name that its sentence has there; the other two use real servers


BLUEPRINT = "12345678-1234-1234-1234-123456789abc"
ENTRA = "11111111-2222-3333-4444-555555555555"
OTHER = "99999999-8888-7777-6666-555555555555"
OPTIONS = ToolOptions("OpenAI")


@pytest.fixture
def seed_pyproject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the project's file; nothing is cached of it before or after."""
    monkeypatch.delenv("AGENT365_APPLICATION_NAME", raising=False)
    reset_application_name_cache()
    yield tmp_path / "pyproject.toml"
    reset_application_name_cache()


@pytest.fixture
def service() -> McpToolServerConfigurationService:
    return McpToolServerConfigurationService()


@pytest.mark.usefixtures("seed_pyproject")
@shows("A365-SEED-U1-1")
def test_token_with_xms_par_app_azp_returns_blueprint_id_from_token() -> None:
    token = jwt(xms_par_app_azp=BLUEPRINT, appid=ENTRA, azp=OTHER)
    assert Utility.get_agent_id_from_token(token) == get_agent_id_from_token(token) == BLUEPRINT


@pytest.mark.usefixtures("seed_pyproject")
@shows("A365-SEED-U1-2")
def test_no_xms_par_app_azp_token_with_appid_returns_entra_app_id() -> None:
    assert Utility.get_agent_id_from_token(jwt(appid=ENTRA, azp=OTHER)) == ENTRA


@pytest.mark.usefixtures("seed_pyproject")
@shows("A365-SEED-U1-3")
def test_no_appid_token_with_azp_returns_azp_claim() -> None:
    assert Utility.get_agent_id_from_token(jwt(azp=OTHER)) == OTHER


@pytest.mark.usefixtures("seed_pyproject")
@shows("A365-SEED-U1-4")
@pytest.mark.parametrize("claims", [{}, {"sub": ENTRA}, {"xms_par_app_azp": "", "appid": None, "azp": ""}])
def test_no_token_claims_returns_empty_string(claims: dict[str, object]) -> None:
    assert Utility.get_agent_id_from_token(jwt(claims)) == ""


@pytest.mark.usefixtures("seed_pyproject")
@shows("A365-SEED-U1-5")
@pytest.mark.parametrize("token", [None, "", "   ", "not a token", "a.b", "a.b.c", "Bearer x", "é.é.é"])
def test_empty_or_invalid_token_returns_empty_string(token: str | None) -> None:
    assert Utility.get_agent_id_from_token(token) == ""


@pytest.mark.usefixtures("seed_pyproject")
@shows("A365-SEED-U2-1")
def test_returns_env_var_when_set(seed_pyproject: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed_pyproject.write_text('[project]\nname = "of-the-file"\n')
    monkeypatch.setenv("AGENT365_APPLICATION_NAME", "of-the-variable")
    assert Utility.get_application_name() == get_application_name() == "of-the-variable"


@pytest.mark.usefixtures("seed_pyproject")
@shows("A365-SEED-U2-2")
def test_returns_pyproject_toml_name_when_env_not_set(seed_pyproject: Path) -> None:
    seed_pyproject.write_text('[project]\nname = "of-the-file"\n')
    assert Utility.get_application_name() == "of-the-file"


@pytest.mark.usefixtures("seed_pyproject")
@shows("A365-SEED-U2-3")
def test_returns_none_when_nothing_available() -> None:
    assert Utility.get_application_name() is None


@pytest.mark.usefixtures("seed_pyproject")
@shows("A365-SEED-U2-4")
def test_caches_the_result(seed_pyproject: Path) -> None:
    seed_pyproject.write_text('[project]\nname = "of-the-file"\n')
    assert Utility.get_application_name() == "of-the-file"
    seed_pyproject.unlink()
    assert Utility.get_application_name() == "of-the-file"


@pytest.mark.usefixtures("seed_pyproject")
@shows("A365-SEED-U3-1")
def test_turn_context_with_agentic_app_blueprint_id_returns_blueprint_id(
    service: McpToolServerConfigurationService,
) -> None:
    assert service._resolve_agent_id_for_header(jwt(xms_par_app_azp=OTHER, appid=ENTRA), asks(BLUEPRINT)) == BLUEPRINT


@pytest.mark.usefixtures("seed_pyproject")
@shows("A365-SEED-U3-2")
@pytest.mark.parametrize("missing", [None, turn(), turn(from_=None), turn(from_=object())])
def test_no_blueprint_id_token_with_claims_returns_token_claim(
    missing: object, service: McpToolServerConfigurationService
) -> None:
    assert service._resolve_agent_id_for_header(jwt(appid=ENTRA), missing) == ENTRA
    assert service._resolve_agent_id_for_header(jwt(appid=ENTRA), asks("")) == ENTRA


@pytest.mark.usefixtures("seed_pyproject")
@shows("A365-SEED-U3-3")
def test_no_claims_returns_application_name(
    service: McpToolServerConfigurationService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT365_APPLICATION_NAME", "travel-desk")
    assert service._resolve_agent_id_for_header(jwt(sub="somebody"), None) == "travel-desk"


@pytest.mark.usefixtures("seed_pyproject")
@shows("A365-SEED-U3-4")
def test_nothing_available_returns_none(service: McpToolServerConfigurationService) -> None:
    assert service._resolve_agent_id_for_header("opaque", None) is None


@pytest.mark.usefixtures("seed_pyproject")
@shows("A365-SEED-U4-1")
def test_includes_x_ms_agentid_when_identifier_available(service: McpToolServerConfigurationService) -> None:
    assert service._prepare_gateway_headers(jwt(appid=ENTRA), OPTIONS)["x-ms-agentid"] == ENTRA
    assert service._prepare_gateway_headers(jwt(appid=ENTRA), OPTIONS, asks(BLUEPRINT))["x-ms-agentid"] == BLUEPRINT


@pytest.mark.usefixtures("seed_pyproject")
@shows("A365-SEED-U4-2")
def test_omits_header_when_no_identifier_available(service: McpToolServerConfigurationService) -> None:
    prepared = service._prepare_gateway_headers("opaque", OPTIONS)
    assert "x-ms-agentid" not in prepared
    assert prepared["Authorization"] == "Bearer opaque"


def asks(blueprint: str) -> object:
    """A turn from an agent."""
    return turn(from_=type("Sender", (), {"agentic_app_blueprint_id": blueprint})())
