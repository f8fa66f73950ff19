"""The settings of the Agent 365 platform: which agent its servers are asked for, and what tokens come from."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator
from pydantic_settings import BaseSettings


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
