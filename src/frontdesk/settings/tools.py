"""The settings of the tools room: where tools come from, how they are searched, how many an agent holds."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode

Secrets = Mapping[str, SecretStr]


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
    """An MCP server whose tools agents may hold: one with an address, or a command that is started here."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,30}$")]
    # Of an address and of a command, a part may be a secret, and `frontdesk doctor` shows what is set.
    url: str | None = Field(None, repr=False)
    transport: Literal["http", "sse", "stdio"] | None = None
    command: str | None = None
    args: tuple[str, ...] = Field((), repr=False)
    env: Secrets = Field(default_factory=dict[str, SecretStr])
    headers: Secrets = Field(default_factory=dict[str, SecretStr])
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
        return comma_list(value)

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
    def _room(self) -> Self:
        if self.min_mcp_tools > self.max_mcp_tools:
            raise ValueError("MIN_MCP_TOOLS is more than MAX_MCP_TOOLS")
        return self


def comma_list(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value
