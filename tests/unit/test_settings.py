"""Tests settings: every name that is read, where a value comes from, and the message of a mistake."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from frontdesk.errors import ConfigurationError
from frontdesk.identity.oauth_server import OAuthServerConfig
from frontdesk.settings import Rate, Settings
from frontdesk.settings.model import config_file_keys, value_origin
from tests.conftest import settings_with
from tests.requirements import shows


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("PROMPTYOSELF_DEFAULT_AGENT_ID", "default_agent_id"),
        ("LETTA_AGENT_ID", "default_agent_id"),
        ("LETTA_DEFAULT_AGENT_ID", "default_agent_id"),
        ("AGENT_ID", "default_agent_id"),
        ("DEFAULT_AGENT_ID", "default_agent_id"),
        ("PROMPTYOSELF_DB", "promptyoself_db"),
        ("AGENT365_APPLICATION_NAME", "application_name"),
    ],
)
def test_names_of_other_products_are_honoured(name: str, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "value-1")
    assert getattr(Settings.read(), field) == "value-1"
    assert value_origin(field, os.environ, frozenset()) == name


@shows("KEPT-14")
@pytest.mark.parametrize("said", [" agent-1", "agent-1 \n", "\tagent-1\t"])
def test_space_around_the_agent_of_the_environment_is_not_part_of_it(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LETTA_AGENT_ID", said)
    assert Settings.read().default_agent_id == "agent-1"


@shows("KEPT-14")
@pytest.mark.parametrize("blank", ["", "  ", "none", " Null "])
def test_a_variable_that_names_no_agent_leaves_it_to_the_next(blank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMPTYOSELF_DEFAULT_AGENT_ID", blank)
    assert Settings.read().default_agent_id is None
    monkeypatch.setenv("LETTA_AGENT_ID", "agent-1")
    assert Settings.read().default_agent_id == "agent-1"
    assert value_origin("default_agent_id", os.environ, frozenset()) == "LETTA_AGENT_ID"


@shows("KEPT-14")
def test_an_odd_agent_id_is_told_under_the_variable_that_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LETTA_AGENT_ID", "no such id!")
    with pytest.raises(ConfigurationError, match="LETTA_AGENT_ID: is not an agent id") as refused:
        Settings.read()
    assert "PROMPTYOSELF_DEFAULT_AGENT_ID" not in str(refused.value)


@shows("KEPT-14")
@pytest.mark.parametrize("name", ["LETTA_API_KEY", "LETTA_SERVER_PASSWORD"])
def test_space_around_the_key_of_letta_is_not_part_of_it_and_a_blank_one_is_none(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, " key\n")
    token = Settings.read().letta_secret
    assert token is not None
    assert token.get_secret_value() == "key"
    monkeypatch.setenv(name, " \n")
    monkeypatch.setenv("LETTA_BASE_URL", "  ")
    assert (Settings.read().letta_secret, Settings.read().letta_base_url) == (None, None)


@pytest.mark.parametrize("name", ["LETTA_BASE_URL", "LETTA_API_URL"])
def test_the_letta_server_has_two_names(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, " http://localhost:8283/ ")
    assert Settings.read().letta_base_url == "http://localhost:8283"


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("ENABLE_AGENT_ID_HEADER", "enable_agent_id_header"),
        ("REQUIRE_AGENT_ID", "require_agent_id"),
        ("DEBUG_AGENT_ID_SOURCE", "debug_agent_id_source"),
        ("STRICT_AGENT_ID_VALIDATION", "strict_agent_id_validation"),
        ("PROMPTYOSELF_USE_SINGLE_AGENT_FALLBACK", "single_agent_fallback"),
    ],
)
def test_switches_are_read_both_ways(name: str, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, value in (("true", True), ("false", False)):
        monkeypatch.setenv(name, text)
        assert getattr(Settings.read(), field) is value


def test_the_environment_beats_the_file_and_the_file_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.joinpath("frontdesk.toml").write_text('port = 4000\nhost = "::1"\nrate_agent = "5/minute"\n')
    monkeypatch.setenv("FRONTDESK_PORT", "5000")
    settings = Settings.read()
    assert (settings.port, settings.host, settings.journal_days) == (5000, "::1", 30)
    assert settings.rate_agent == Rate(limit=5, seconds=60)
    keys = config_file_keys()
    assert value_origin("port", os.environ, keys) == "FRONTDESK_PORT"
    assert value_origin("host", os.environ, keys) == "frontdesk.toml"
    assert value_origin("journal_days", os.environ, keys) == "default"


def test_issuers_come_from_the_file_as_tables(tmp_path: Path) -> None:
    tmp_path.joinpath("frontdesk.toml").write_text('[[issuers]]\nissuer = "https://id.example"\naudience = "desk"\n')
    assert Settings.read().trusted_issuers[0].audience == ("desk",)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"FRONTDESK_PORT": "many"}, "FRONTDESK_PORT"),
        ({"FRONTDESK_RATE_AGENT": "fast"}, "600/minute"),
        ({"FRONTDESK_PUBLIC_URL": "desk.example"}, "http"),
        ({"FRONTDESK_ISSUERS": '[{"issuer": "i", "hs256_secret": "s"}]'}, "HS256"),
        ({"FRONTDESK_ISSUERS": '[{"issuer": "i", "algorithms": ["RS256", "HS256"], "hs256_secret": "s"}]'}, "HS256"),
        ({"FRONTDESK_JOURNAL_DAYS": "0"}, "FRONTDESK_JOURNAL_DAYS"),
        ({"FRONTDESK_JOURNAL_DAYS": "1000000"}, "FRONTDESK_JOURNAL_DAYS"),
        ({"FRONTDESK_ISSUERS": "nonsense"}, "issuers"),
        ({"FRONTDESK_ISSUERS": '[{"issuer": "i"}, {"issuer": "j"}]'}, "prefix of its own"),
        ({"FRONTDESK_ALLOWED_ORIGINS": "*"}, "any web page"),
        ({"FRONTDESK_CONFIG": "nowhere.toml"}, "no file"),
        ({"FRONTDESK_CONFIG": "."}, "no file"),
        ({"LETTA_AGENT_ID": "bad id"}, "not an agent id"),
        ({"LETTA_BASE_URL": "http://me:hunter2@letta.example"}, "must not carry a login"),
        ({"OAUTH_CLIENTS": "[{}]"}, "client_id"),
        ({"OAUTH_CLIENTS": '[{"client_id": "a", "redirect_uris": []}]'}, "redirect_uris"),
        ({"OAUTH_CLIENTS": '[{"client_id": "a", "redirect_uris": ["http://a.example/cb"]}]'}, "must be https"),
        ({"OAUTH_CLIENTS": '[{"client_id": "a", "redirect_uris": ["https://a.example/#x"]}]'}, "lead back to"),
        ({"OAUTH_CLIENTS": '[{"client_id": "a", "redirect_uris": ["x:y"], "client_secret": ""}]'}, "client_secret"),
        ({"OAUTH_CLIENTS": json.dumps([{"client_id": "a", "redirect_uris": ["x:y"]}] * 2)}, "names a client twice"),
        ({"OAUTH_CLIENT_ID": "a b"}, "OAUTH_CLIENT_ID"),
        ({"OAUTH_REDIRECT_URI": "javascript:alert(1)"}, "lead back to"),
    ],
)
def test_a_mistake_names_the_setting(values: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=said) as caught:
        Settings.read()
    assert "hunter2" not in str(caught.value)


def test_a_mistake_does_not_quote_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRONTDESK_ISSUERS", '[{"issuer": "i", "hs256_secret": "hunter2", "algorithms": ["RS256"]}]')
    with pytest.raises(ConfigurationError) as caught:
        Settings.read()
    assert "hunter2" not in str(caught.value)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    tmp_path.joinpath("frontdesk.toml").write_text("port = ")
    with pytest.raises(ConfigurationError, match=r"frontdesk\.toml"):
        Settings.read()


@pytest.mark.parametrize(
    ("values", "exposed"),
    [
        ({}, False),
        ({"FRONTDESK_HOST": "localhost"}, False),
        ({"FRONTDESK_HOST": "::1"}, False),
        ({"FRONTDESK_HOST": "0.0.0.0"}, True),
        ({"FRONTDESK_HOST": "192.0.2.1"}, True),
        ({"FRONTDESK_PUBLIC_URL": "https://desk.example"}, True),
        ({"FRONTDESK_PUBLIC_URL": "http://localhost:3020"}, False),
        ({"FRONTDESK_ALLOWED_HOSTS": "desk.example:443"}, True),
        ({"FRONTDESK_ALLOWED_HOSTS": "localhost:8080"}, False),
    ],
)
def test_what_can_be_reached_from_elsewhere_is_known(values: dict[str, str], *, exposed: bool) -> None:
    assert settings_with(**values).exposed is exposed
    assert settings_with(**values).auth_required is exposed


def test_a_supabase_project_is_an_issuer() -> None:
    base = {"NEXT_PUBLIC_SUPABASE_URL": "https://p.supabase.example"}
    (modern,) = settings_with(**base).trusted_issuers
    assert modern.issuer == "https://p.supabase.example/auth/v1"
    assert modern.hs256_secret is None
    (legacy,) = settings_with(**base, SUPABASE_JWT_SECRET="s").trusted_issuers
    assert legacy.algorithms == ("HS256",)


def test_the_client_of_one_setting_is_one_more_unless_it_is_listed() -> None:
    listed = [{"client_id": "app", "redirect_uris": ["app://back"]}]
    alone = settings_with(OAUTH_CLIENT_ID="zmemory-mcp", OAUTH_CLIENT_SECRET="hunter2")
    assert [one.redirect_uris for one in alone.login_clients] == [("http://localhost:3000/callback",)]
    assert "hunter2" not in repr(alone)
    both = settings_with(OAUTH_CLIENTS=listed, OAUTH_CLIENT_ID="zmemory-mcp")
    assert [one.client_id for one in both.login_clients] == ["app", "zmemory-mcp"]
    known = settings_with(OAUTH_CLIENTS=listed, OAUTH_CLIENT_ID="app")
    assert known.login_clients == known.oauth_clients
    assert settings_with().login_clients == ()


@pytest.mark.parametrize("values", [{"OAUTH_SCOPE": "all"}, {"OAUTH_CLIENTS": [{"scopes": ["all"]}]}])
def test_a_scope_that_is_none_is_told_at_the_start(values: dict[str, Any]) -> None:
    clients = [{"client_id": "app", "redirect_uris": ["app://back"], **one} for one in values.get("OAUTH_CLIENTS", [])]
    with pytest.raises(ConfigurationError, match="names the scope 'all'; there are: "):
        OAuthServerConfig.of(settings_with(**values | {"OAUTH_CLIENTS": clients}), "https://desk.example", frozenset())
