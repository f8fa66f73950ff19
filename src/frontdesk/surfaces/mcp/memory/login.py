"""What the login tools take and answer."""

from pydantic import Field

from frontdesk.surfaces.mcp.tool import Answer, Arguments


class Authenticate(Arguments):
    """For which client, and for what."""

    client_id: str = Field(min_length=1, max_length=200)
    redirect_uri: str | None = Field(None, max_length=2000, description="Where the person is sent back to.")
    scope: str | None = Field(None, max_length=2000, description="What the login is for, space separated.")
    state: str | None = Field(None, max_length=2000, description="Comes back with the code; made up if left out.")


class Exchange(Arguments):
    """The code, and what proves that it is ours."""

    code: str = Field(min_length=1, max_length=2000)
    redirect_uri: str = Field(min_length=1, max_length=2000)
    code_verifier: str | None = Field(None, max_length=200, description="As authenticate answered it.")


class Refresh(Arguments):
    """What renews a login."""

    refresh_token: str = Field(min_length=1, max_length=10_000)


class SetToken(Arguments):
    """Whose."""

    access_token: str = Field(min_length=1, max_length=10_000, description="The person's token or key.")


class LoginAnswer(Answer):
    """Where the person logs in; `code_verifier` is for whoever exchanges the code."""

    authorization_url: str
    client_id: str
    redirect_uri: str
    scope: str
    state: str
    code_verifier: str


class TokensAnswer(Answer):
    """Tokens, shown once; `kept` is whether this session remembers the first."""

    token_type: str
    access_token: str
    refresh_token: str
    expires_in: int
    scope: str
    user_id: str
    kept: bool


class UserAnswer(Answer):
    """A person."""

    sub: str
    email: str | None
    name: str | None


class StandingAnswer(Answer):
    """Who this session acts for. Without `scopes`, nothing is held back."""

    authenticated: bool
    user_id: str | None
    agent_id: str | None
    by: str | None
    scopes: list[str] | None
    session: bool


class KeptAnswer(Answer):
    """Whose token it is, and whether this session remembers it."""

    user_id: str | None
    kept: bool
