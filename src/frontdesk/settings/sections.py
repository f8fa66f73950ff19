"""Defines the settings of logins, Agent 365, the scheduler and tools, as parts of `Settings`."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode

from frontdesk.settings.values import ClientId, OAuthClient, check_redirect_uri


class LoginSettings(BaseSettings):
    """Part of `Settings`."""

    oauth_clients: tuple[OAuthClient, ...] = Field(
        (),
        alias="OAUTH_CLIENTS",
        description="Clients that may ask people to log in, as a JSON list, or `[[oauth_clients]]` tables in the file.",
    )
    oauth_client_id: ClientId | None = Field(
        None,
        alias="OAUTH_CLIENT_ID",
        description="The client that the MCP tool `authenticate` speaks for; one more client, unless it is listed.",
    )
    oauth_client_secret: SecretStr | None = Field(None, alias="OAUTH_CLIENT_SECRET", description="Its secret.")
    oauth_redirect_uri: str = Field(
        "http://localhost:3000/callback", alias="OAUTH_REDIRECT_URI", description="Where it is sent the code."
    )
    oauth_scope: str = Field(
        "tasks.write",
        alias="OAUTH_SCOPE",
        description="What a login is for when a client does not say, space separated.",
    )
    zmemory_api_key: SecretStr | None = Field(
        None,
        alias="ZMEMORY_API_KEY",
        description="The key or token of the person whom `frontdesk mcp` acts for.",
    )
    list_all_memory_tools: bool = Field(
        False,
        alias="FRONTDESK_LIST_ALL_MEMORY_TOOLS",
        description="List `health`, `whoami` and the tools for categories at `/mcp/memory` too, beside zmemory's 43.",
    )

    @field_validator("oauth_redirect_uri", mode="after")
    @classmethod
    def _redirect_uri(cls, value: str) -> str:
        check_redirect_uri(value)
        return value

    @model_validator(mode="after")
    def _clients_apart(self) -> Self:
        names = [client.client_id for client in self.oauth_clients]
        if len(set(names)) < len(names):
            raise ValueError("OAUTH_CLIENTS names a client twice; give each an id of its own")
        return self

    @property
    def login_clients(self) -> tuple[OAuthClient, ...]:
        """Every client: those in the list, and the one of OAUTH_CLIENT_ID if it is not among them."""
        if self.oauth_client_id is None or any(one.client_id == self.oauth_client_id for one in self.oauth_clients):
            return self.oauth_clients
        one = OAuthClient(
            client_id=self.oauth_client_id,
            client_secret=self.oauth_client_secret,
            redirect_uris=(self.oauth_redirect_uri,),
        )
        return (*self.oauth_clients, one)


class PlatformOAuth(BaseModel):
    """Where tokens for the platform's servers are fetched, one for each scope."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    token_url: str
    client_id: Annotated[str, Field(min_length=1)]
    client_secret: SecretStr | None = None
    grant: Literal["client_credentials", "on_behalf_of"] = "client_credentials"

    @field_validator("token_url", mode="after")
    @classmethod
    def _address(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ValueError("must be http(s)://host/path without a user name")
        return value


class PlatformSettings(BaseSettings):
    """Part of `Settings`."""

    platform_app_id: Annotated[str, Field(max_length=256, pattern=r"[^\s.]")] | None = Field(
        None,
        alias="FRONTDESK_PLATFORM_APP_ID",
        description="The agent whose servers Agent 365 is asked for, by its agentic app id; unset, it is not asked.",
    )
    platform_token: SecretStr | None = Field(
        None,
        alias="FRONTDESK_PLATFORM_TOKEN",
        description="One token to ask it with, and for those servers that share its audience.",
    )
    platform_oauth: PlatformOAuth | None = Field(
        None,
        alias="FRONTDESK_PLATFORM_OAUTH",
        description="Where tokens are fetched instead, one for each scope, as JSON, or a table in the file.",
    )


class ScheduleSettings(BaseSettings):
    """Part of `Settings`."""

    worker: bool = Field(
        True,
        alias="FRONTDESK_WORKER",
        description="Deliver due prompts from the server's own process; off where `frontdesk worker` does it alone.",
    )
    worker_concurrency: int = Field(
        128, ge=1, le=10_000, alias="FRONTDESK_WORKER_CONCURRENCY", description="Prompts at once in a process."
    )
    executor_autostart: bool = Field(
        True,
        alias="PROMPTYOSELF_EXECUTOR_AUTOSTART",
        description="The same switch as FRONTDESK_WORKER, under its older name: off in either is off.",
    )
    executor_interval: int = Field(
        60,
        ge=1,
        le=86_400,
        alias="PROMPTYOSELF_EXECUTOR_INTERVAL",
        description="Seconds between the rounds of `promptyoself_execute` in a loop; the worker itself waits for none.",
    )
    promptyoself_db: str | None = Field(
        None,
        alias="PROMPTYOSELF_DB",
        description="A PromptYoSelf database file: what `frontdesk schedule import` reads, and `health` shows.",
    )
    schedule_limit: int = Field(
        200, ge=1, le=1_000_000, alias="FRONTDESK_SCHEDULE_LIMIT", description="Schedules that an agent has at most."
    )
    schedule_shortest: int = Field(
        10,
        ge=1,
        le=86_400,
        alias="FRONTDESK_SCHEDULE_SHORTEST",
        description="Seconds between two runs of one, at least.",
    )
    schedule_longest_prompt: int = Field(
        20_000,
        ge=1,
        le=1_000_000,
        alias="FRONTDESK_SCHEDULE_LONGEST_PROMPT",
        description="Characters of a prompt at most.",
    )
    webhook_secret: SecretStr | None = Field(
        None,
        alias="FRONTDESK_WEBHOOK_SECRET",
        description="Signs answers on their way to webhooks; none go without it.",
    )
    webhook_private: bool = Field(
        False,
        alias="FRONTDESK_WEBHOOK_PRIVATE",
        description="Let webhooks lead to this machine and to private networks.",
    )

    @property
    def delivers_prompts(self) -> bool:
        """Whether a server delivers due prompts itself."""
        return self.worker and self.executor_autostart


SecretMap = Mapping[str, SecretStr]


class ServerOAuth(BaseModel):
    """How to get a token for a server: for ourselves, or in exchange for the user's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    token_url: str
    client_id: str
    client_secret: SecretStr | None = None
    grant: Literal["client_credentials", "token_exchange", "on_behalf_of"] = "client_credentials"
    audience: str | None = None
    resource: str | None = None
    scope: str | None = None


class ToolServer(BaseModel):
    """An MCP server whose tools agents may have: one with an address, or a command that is started here."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,30}$")]
    # An address or a command may contain a secret, and `frontdesk doctor` shows settings.
    url: str | None = Field(None, repr=False)
    transport: Literal["http", "sse", "stdio"] | None = None
    command: str | None = None
    args: tuple[str, ...] = Field((), repr=False)
    env: SecretMap = Field(default_factory=dict[str, SecretStr])
    headers: SecretMap = Field(default_factory=dict[str, SecretStr])
    user_token: bool = False
    oauth: ServerOAuth | None = None
    timeout: float = Field(60.0, gt=0, le=3600)
    description: Annotated[str, Field(max_length=2000)] = ""
    hold_changes: bool | None = None

    @model_validator(mode="after")
    def _address_or_command(self) -> Self:
        if self.name == "host":
            raise ValueError("'host' stands for the agent host's own tools; choose another name")
        if (self.url is None) == (self.command is None):
            raise ValueError(f"MCP server '{self.name}' needs a url, or a command to start, and not both")
        if self.transport is not None and (self.transport == "stdio") != (self.command is not None):
            raise ValueError(f"MCP server '{self.name}': transport stdio goes with a command, http and sse with a url")
        return self


class ToolSettings(BaseSettings):
    """Part of `Settings`."""

    mcp_servers: tuple[ToolServer, ...] = Field(
        (),
        alias="FRONTDESK_MCP_SERVERS",
        description="MCP servers whose tools agents may hold, as a JSON list, or `[[mcp_servers]]` tables in the file.",
    )
    tools_manifest: str | None = Field(
        None,
        alias="FRONTDESK_TOOLS_MANIFEST",
        description="A file that lists more of them, as editors and the Agent 365 tooling write it.",
    )
    crawl_minutes: float = Field(
        15, gt=0, le=10_080, alias="FRONTDESK_CRAWL_MINUTES", description="Minutes until servers are asked again."
    )
    hold_changed_tools: bool = Field(
        False,
        alias="FRONTDESK_HOLD_CHANGED_TOOLS",
        description="Hold back a tool whose description or schema changed until somebody has looked at it.",
    )
    embeddings: str = Field(
        "builtin",
        alias="FRONTDESK_EMBEDDINGS",
        description="What search by meaning runs on: `builtin`, `off`, or the address of an embeddings API.",
    )
    embeddings_model: str | None = Field(
        None, alias="FRONTDESK_EMBEDDINGS_MODEL", description="The model to ask for at that address."
    )
    embeddings_key: SecretStr | None = Field(None, alias="FRONTDESK_EMBEDDINGS_KEY", description="Its API key.")
    learn_from_use: bool = Field(
        True, alias="FRONTDESK_LEARN_FROM_USE", description="Let what tools were good for before count in a search."
    )
    max_total_tools: int = Field(
        30, ge=1, le=1000, alias="MAX_TOTAL_TOOLS", description="Tools that an agent holds at most."
    )
    max_mcp_tools: int = Field(
        20, ge=1, le=1000, alias="MAX_MCP_TOOLS", description="Tools of MCP servers that an agent holds at most."
    )
    min_mcp_tools: int = Field(
        7, ge=0, le=1000, alias="MIN_MCP_TOOLS", description="Tools of MCP servers that making room leaves it."
    )
    default_drop_rate: float = Field(
        0.6, ge=0, le=1, alias="DEFAULT_DROP_RATE", description="The share of tools given up where room is needed."
    )
    never_detach_tools: Annotated[tuple[str, ...], NoDecode] = Field(
        ("find_tools", "call_tool"),
        alias="NEVER_DETACH_TOOLS",
        description="Tools that stay, by exact name, id or tag, comma separated.",
    )
    manage_only_mcp_tools: bool = Field(
        False, alias="MANAGE_ONLY_MCP_TOOLS", description="Attach and detach tools of MCP servers alone."
    )
    exclude_letta_core_tools: bool = Field(
        True, alias="EXCLUDE_LETTA_CORE_TOOLS", description="Leave Letta's core tools out of searches."
    )
    exclude_official_tools: bool = Field(
        True, alias="EXCLUDE_OFFICIAL_TOOLS", description="Leave the agent host's other built-in tools out as well."
    )

    @field_validator("never_detach_tools", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        return split_commas(value)

    @field_validator("embeddings", mode="after")
    @classmethod
    def _source(cls, value: str) -> str:
        if value not in ("builtin", "off") and urlsplit(value).scheme not in ("http", "https"):
            raise ValueError("is `builtin`, `off`, or the http(s) address of an embeddings API")
        if "@" in value:
            raise ValueError("must not carry a login; FRONTDESK_EMBEDDINGS_KEY holds the key")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _servers_apart(self) -> Self:
        names = [server.name for server in self.mcp_servers]
        if len(set(names)) < len(names):
            raise ValueError("two MCP servers have the same name: their tools could not be told apart")
        return self

    @model_validator(mode="after")
    def _has_room_for_minimum(self) -> Self:
        if self.min_mcp_tools > self.max_mcp_tools:
            raise ValueError("MIN_MCP_TOOLS is more than MAX_MCP_TOOLS")
        return self


def split_commas(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value
