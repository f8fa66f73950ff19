"""The settings of logins: the clients that may ask people for one, and who `frontdesk mcp` acts for."""

from typing import Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

from frontdesk.settings.values import ClientId, OAuthClient, check_redirect_uri


class AccessSettings(BaseSettings):
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
        """Every client: the ones listed, and the one of OAUTH_CLIENT_ID where it is not among them."""
        if self.oauth_client_id is None or any(one.client_id == self.oauth_client_id for one in self.oauth_clients):
            return self.oauth_clients
        one = OAuthClient(
            client_id=self.oauth_client_id,
            client_secret=self.oauth_client_secret,
            redirect_uris=(self.oauth_redirect_uri,),
        )
        return (*self.oauth_clients, one)
