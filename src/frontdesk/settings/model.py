"""Defines `Settings`, and reads it from the environment and `frontdesk.toml`."""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)
from typing_extensions import override

from frontdesk.errors import ConfigurationError
from frontdesk.settings.sections import LoginSettings, PlatformSettings, ScheduleSettings, ToolSettings, split_commas
from frontdesk.settings.values import Issuer, Rate, is_loopback, parse_rate

AGENT_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,128}")
# Words that clients and settings send when there is no agent id.
EMPTY_AGENT_IDS = frozenset({"", "none", "null"})
CONFIG_FILE_VARIABLE = "FRONTDESK_CONFIG"
DEFAULT_CONFIG_FILE = "frontdesk.toml"

# The variables for the default agent id, in this order.
DEFAULT_AGENT_VARIABLES = (
    "PROMPTYOSELF_DEFAULT_AGENT_ID",
    "LETTA_AGENT_ID",
    "LETTA_DEFAULT_AGENT_ID",
    "AGENT_ID",
    "DEFAULT_AGENT_ID",
)

# Variables of products that Frontdesk replaces; `frontdesk doctor` reports those that are still set.
OBSOLETE_VARIABLES: Mapping[str, str] = {
    "ZMEMORY_API_URL": "Frontdesk stores the memory itself; there is no backend to name",
    "ZMEMORY_TIMEOUT": "Frontdesk stores the memory itself; there is no backend to wait for",
    "NEXT_PUBLIC_SUPABASE_ANON_KEY": "tokens are checked against the issuer's keys, not with the anon key",
    "SUPABASE_SERVICE_ROLE_KEY": "API keys are Frontdesk's own; no service role is needed",
}

URL_FIELDS = ("public_url", "letta_base_url", "supabase_url", "openai_base_url", "anthropic_base_url")
# These are sent in headers, which must not end in white space; a key from a file often ends in a line break.
KEY_FIELDS = ("letta_api_key", "letta_server_password", "openai_api_key", "anthropic_api_key")


def _aliases(*names: str) -> AliasChoices:
    return AliasChoices(*names)


def _default_data_folder() -> Path:
    home = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(home).expanduser() / "frontdesk"


class Settings(ToolSettings, ScheduleSettings, LoginSettings, PlatformSettings):
    """Every setting is a field; its aliases are the names of its environment variables."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, env_ignore_empty=True, validate_default=True
    )

    host: str = Field("127.0.0.1", alias="FRONTDESK_HOST", description="Address to listen on.")
    port: int = Field(
        3020, ge=0, le=65535, alias="FRONTDESK_PORT", description="Port to listen on; 0 takes a free one."
    )
    data: Path = Field(
        default_factory=_default_data_folder,
        alias="FRONTDESK_DATA",
        description="Folder for the SQLite database and everything else Frontdesk keeps; made on first start.",
    )
    database_url: SecretStr | None = Field(
        None,
        alias="FRONTDESK_DATABASE_URL",
        description="`postgresql://user:password@host/name` for replicas; SQLite in the data folder when unset.",
    )
    public_url: str | None = Field(
        None,
        alias="FRONTDESK_PUBLIC_URL",
        description="How clients reach the server, e.g. `https://desk.example.com`; part of OAuth metadata.",
    )
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (), alias="FRONTDESK_ALLOWED_HOSTS", description="More `Host` values to answer, comma separated."
    )
    allowed_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        (), alias="FRONTDESK_ALLOWED_ORIGINS", description="Browser origins that may call, comma separated."
    )
    require_auth: bool | None = Field(
        None,
        alias="FRONTDESK_REQUIRE_AUTH",
        description="Demand a credential on every call. Always so beyond loopback; off by default on loopback.",
    )
    issuers: tuple[Issuer, ...] = Field(
        (),
        alias="FRONTDESK_ISSUERS",
        description="OAuth issuers as a JSON list, or `[[issuers]]` tables in frontdesk.toml.",
    )
    supabase_url: str | None = Field(
        None,
        alias="NEXT_PUBLIC_SUPABASE_URL",
        description="A Supabase project whose users' tokens are accepted.",
    )
    supabase_jwt_secret: SecretStr | None = Field(
        None,
        alias="SUPABASE_JWT_SECRET",
        description="The project's legacy HS256 secret, where its tokens are not signed with a key pair.",
    )
    rate_agent: Annotated[Rate | None, NoDecode] = Field(
        None,
        alias="FRONTDESK_RATE_AGENT",
        description="Calls per agent, e.g. `600/minute` (units: second, minute, hour); no limit when unset.",
    )
    rate_user: Annotated[Rate | None, NoDecode] = Field(
        None, alias="FRONTDESK_RATE_USER", description="Calls per user, in the same form."
    )
    journal_days: int = Field(
        30, ge=1, le=36_500, alias="FRONTDESK_JOURNAL_DAYS", description="Days that journal rows are kept."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", alias="FRONTDESK_LOG_LEVEL", description="`debug`, `info`, `warning` or `error`."
    )
    log_format: Literal["text", "json"] = Field(
        "text", alias="FRONTDESK_LOG_FORMAT", description="`text` for people, `json` for machines."
    )

    enable_agent_id_header: bool = Field(
        True, alias="ENABLE_AGENT_ID_HEADER", description="Read the agent id from the `x-agent-id` header."
    )
    require_agent_id: bool = Field(
        True, alias="REQUIRE_AGENT_ID", description="Refuse agent-bound calls that name no agent."
    )
    debug_agent_id_source: bool = Field(
        False, alias="DEBUG_AGENT_ID_SOURCE", description="Log where each call's agent id came from."
    )
    strict_agent_id_validation: bool = Field(
        False,
        alias="STRICT_AGENT_ID_VALIDATION",
        description="Refuse agent ids that the agent host does not know and, beyond loopback, unproven ones.",
    )
    default_agent_id: str | None = Field(
        None,
        validation_alias=_aliases(*DEFAULT_AGENT_VARIABLES),
        description="The agent to act for when a request names none; the first one set counts.",
    )
    single_agent_fallback: bool = Field(
        False,
        alias="PROMPTYOSELF_USE_SINGLE_AGENT_FALLBACK",
        description="Act for the only agent of the host when a request names none and exactly one exists.",
    )

    letta_base_url: str | None = Field(
        None,
        validation_alias=_aliases("LETTA_BASE_URL", "LETTA_API_URL"),
        description="The Letta server that hosts the agents; the built-in host when unset.",
    )
    letta_api_key: SecretStr | None = Field(None, alias="LETTA_API_KEY", description="Its API key.")
    letta_server_password: SecretStr | None = Field(
        None, alias="LETTA_SERVER_PASSWORD", description="Its password, where the server is self-hosted."
    )
    model: str | None = Field(
        None,
        alias="FRONTDESK_MODEL",
        description="The model of agents that name none, e.g. `anthropic:claude-sonnet-5-5`; else the keys decide.",
    )
    image_models: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        alias="FRONTDESK_IMAGE_MODELS",
        description="More models that take pictures, as `PROVIDER:MODEL`, comma separated.",
    )
    openai_api_key: SecretStr | None = Field(
        None, alias="OPENAI_API_KEY", description="For the built-in agents' models on the OpenAI API."
    )
    openai_base_url: str | None = Field(
        None, alias="OPENAI_BASE_URL", description="Another endpoint that speaks OpenAI's chat completions API."
    )
    anthropic_api_key: SecretStr | None = Field(
        None, alias="ANTHROPIC_API_KEY", description="For the built-in agents' models on the Anthropic API."
    )
    anthropic_base_url: str | None = Field(
        None, alias="ANTHROPIC_BASE_URL", description="Another endpoint that speaks Anthropic's messages API."
    )
    application_name: str | None = Field(
        None,
        alias="AGENT365_APPLICATION_NAME",
        description="What `x-ms-agentid` says to Agent 365's servers when neither turn nor token names an agent.",
    )

    @field_validator("allowed_hosts", "allowed_origins", "image_models", mode="before")
    @classmethod
    def _comma_list(cls, value: object) -> object:
        return split_commas(value)

    @field_validator("rate_agent", "rate_user", mode="before")
    @classmethod
    def _rate(cls, value: object) -> object:
        return parse_rate(value) if isinstance(value, str) else value

    @field_validator("data", mode="after")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @field_validator(*URL_FIELDS, *KEY_FIELDS, mode="before")
    @classmethod
    def _without_space(cls, value: object) -> object:
        return value.strip() or None if isinstance(value, str) else value

    @field_validator(*URL_FIELDS, mode="after")
    @classmethod
    def _http_url(cls, value: str | None) -> str | None:
        if value is not None and urlsplit(value).scheme not in {"http", "https"}:
            raise ValueError("must be an http:// or https:// URL")
        if value is not None and "@" in urlsplit(value).netloc:
            raise ValueError("must not carry a login: a URL is shown to people; a key or password has its own setting")
        return value.rstrip("/") if value else value

    @field_validator("allowed_origins", mode="after")
    @classmethod
    def _origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if "*" in value:
            raise ValueError("every origin would be any web page; name those that may call")
        return tuple(origin.lower().rstrip("/") for origin in value)

    @field_validator("default_agent_id", mode="after")
    @classmethod
    def _agent_id(cls, value: str | None) -> str | None:
        found = clean_agent_id(value)
        if found is not None and not AGENT_ID_PATTERN.fullmatch(found):
            raise ValueError("is not an agent id: letters, digits, - and _, at most 128")
        return found

    @model_validator(mode="after")
    def _issuers_apart(self) -> Self:
        # A subject is unique only within its issuer.
        if len({issuer.prefix for issuer in self.trusted_issuers}) < len(self.trusted_issuers):
            raise ValueError("a user of one issuer could pass for a user of another: give each a prefix of its own")
        return self

    @classmethod
    @override
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        toml = TomlConfigSettingsSource(settings_cls, toml_file=config_path())
        if isinstance(env_settings, EnvSettingsSource):
            # If a variable names no agent, the next one counts.
            empty = {name.lower() for name in DEFAULT_AGENT_VARIABLES if clean_agent_id(os.environ.get(name)) is None}
            said = env_settings.env_vars.items()
            env_settings.env_vars = {name: value for name, value in said if name.lower() not in empty}
        return init_settings, env_settings, toml

    @classmethod
    def read(cls) -> Self:
        """Read the environment and the file; an error names the variable and its valid values."""
        if os.environ.get(CONFIG_FILE_VARIABLE) and not config_path().is_file():
            raise ConfigurationError(f"{CONFIG_FILE_VARIABLE} names {config_path()}, where there is no file")
        try:
            return cls()  # pyright: ignore[reportCallIssue] - every field has a default; the aliases hide that
        except ValidationError as error:
            raise ConfigurationError(_explain_errors(error)) from error
        except SettingsError as error:
            raise ConfigurationError(f"Some settings are wrong: {error}; a list is written as JSON") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{config_path()} is not valid TOML: {error}") from error
        except OSError as error:
            raise ConfigurationError(f"{config_path()} cannot be read: {error.strerror}") from error

    def with_values(self, **values: object) -> Self:
        """The same settings with these changes; None changes nothing."""
        return self.model_copy(update={name: value for name, value in values.items() if value is not None})

    @property
    def exposed(self) -> bool:
        """Whether other machines can reach the server."""
        return self.exposed_by is not None

    @property
    def exposed_by(self) -> str | None:
        """The setting that lets others reach the server, with its value."""
        if not is_loopback(self.host):
            return f"FRONTDESK_HOST={self.host}"
        if self.public_url and not is_loopback(urlsplit(self.public_url).hostname or ""):
            return f"FRONTDESK_PUBLIC_URL={self.public_url}"
        named = [host for host in self.allowed_hosts if not is_loopback(_hostname_of(host))]
        return f"FRONTDESK_ALLOWED_HOSTS={','.join(named)}" if named else None

    @property
    def auth_required(self) -> bool:
        return self.exposed or bool(self.require_auth)

    @property
    def letta_secret(self) -> SecretStr | None:
        return self.letta_api_key or self.letta_server_password

    @property
    def trusted_issuers(self) -> tuple[Issuer, ...]:
        """The configured issuers, and the Supabase project if one is named."""
        if not self.supabase_url:
            return self.issuers
        secret = self.supabase_jwt_secret
        supabase = Issuer(
            issuer=f"{self.supabase_url}/auth/v1",
            audience=("authenticated",),
            jwks_url=None if secret else f"{self.supabase_url}/auth/v1/.well-known/jwks.json",
            algorithms=("HS256",) if secret else ("ES256", "RS256"),
            hs256_secret=secret,
        )
        return (*self.issuers, supabase)


def clean_agent_id(text: str | None) -> str | None:
    """The agent id without white space around it; None if it is no id."""
    found = (text or "").strip()
    return None if found.lower() in EMPTY_AGENT_IDS else found


def config_path() -> Path:
    return Path(os.environ.get(CONFIG_FILE_VARIABLE) or DEFAULT_CONFIG_FILE)


def variable_names(field: str) -> tuple[str, ...]:
    """The environment variables that set a field; the preferred one comes first."""
    alias = Settings.model_fields[field].validation_alias
    if isinstance(alias, AliasChoices):
        return tuple(str(choice) for choice in alias.choices)
    return (str(alias),)


def value_origin(field: str, environ: Mapping[str, str], file_keys: frozenset[str]) -> str:
    """Where a field's value comes from: the variable, the file, or the default."""
    for name in variable_names(field):
        if clean_agent_id(environ.get(name)) if field == "default_agent_id" else environ.get(name):
            return name
    if field in file_keys or any(name in file_keys for name in variable_names(field)):
        return str(config_path())
    return "default"


def config_file_keys() -> frozenset[str]:
    """The top-level keys of the configuration file; none when there is no file."""
    try:
        with config_path().open("rb") as file:
            return frozenset(tomllib.load(file))
    except FileNotFoundError:
        return frozenset()


def _hostname_of(host: str) -> str:
    return urlsplit(f"//{host}").hostname or host


def _used_variable(alias: str) -> str:
    """The name, among those of a setting, that has the value."""
    field = next((field for field in Settings.model_fields if alias in (field, *variable_names(field))), None)
    found = "default" if field is None else value_origin(field, os.environ, config_file_keys())
    return found if found.isupper() else alias


def _explain_errors(error: ValidationError) -> str:
    lines: list[str] = []
    for problem in error.errors(include_input=False, include_url=False, include_context=False):
        field = _used_variable(str(problem["loc"][0])) if problem["loc"] else "settings"
        rest = ".".join(str(part) for part in problem["loc"][1:])
        lines.append(f"{field}{'.' + rest if rest else ''}: {problem['msg'].removeprefix('Value error, ')}")
    return "Some settings are wrong: " + "; ".join(lines)
