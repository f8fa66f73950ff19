"""Offers MCP tools that log a person in for a client's session."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from frontdesk.app import App
from frontdesk.errors import Conflict, Denied, Invalid, Unauthenticated, Unavailable
from frontdesk.identity.inbound import CLIENT_NOT_TRUSTED
from frontdesk.identity.model import IssuedTokens
from frontdesk.interfaces.http.middleware import strip_bearer
from frontdesk.interfaces.mcp.tools import McpCall
from frontdesk.operations import (
    Answer,
    BoundOperation,
    Effect,
    McpPath,
    McpTool,
    NoArguments,
    Operation,
    OperationRequest,
    Run,
)


class LoginAnswer(BaseModel):
    """The base of the answers."""

    model_config = ConfigDict(frozen=True)


class BeginLoginInput(OperationRequest):
    """The client that logs in, and the requested scopes."""

    client_id: str = Field(min_length=1, max_length=200)
    redirect_uri: str | None = Field(None, max_length=2000, description="Where the person is sent back to.")
    scope: str | None = Field(None, max_length=2000, description="What the login is for, space separated.")
    state: str | None = Field(None, max_length=2000, description="Comes back with the code; made up if left out.")


class ExchangeCodeInput(OperationRequest):
    """The code, and the proof that this client requested it."""

    code: str = Field(min_length=1, max_length=2000)
    redirect_uri: str = Field(min_length=1, max_length=2000)
    code_verifier: str | None = Field(None, max_length=200, description="As authenticate answered it.")


class RefreshTokenInput(OperationRequest):
    """The refresh token of a login."""

    refresh_token: str = Field(min_length=1, max_length=10_000)


class SetTokenInput(OperationRequest):
    """The token to act with."""

    access_token: str = Field(min_length=1, max_length=10_000, description="The person's token or key.")


class BeginLoginOutput(LoginAnswer):
    """The address where the person logs in. `code_verifier` is for the exchange of the code."""

    authorization_url: str
    client_id: str
    redirect_uri: str
    scope: str
    state: str
    code_verifier: str


class TokensOutput(LoginAnswer):
    """Tokens, shown once. `kept`: whether this session stores the access token."""

    token_type: str
    access_token: str
    refresh_token: str
    expires_in: int
    scope: str
    user_id: str
    kept: bool


class UserInfoOutput(LoginAnswer):
    """A person."""

    sub: str
    email: str | None
    name: str | None


class AuthStatusOutput(LoginAnswer):
    """The person and agent of this session. Without `scopes`, everything is allowed."""

    authenticated: bool
    user_id: str | None
    agent_id: str | None
    by: str | None
    scopes: list[str] | None
    session: bool


class SessionTokenOutput(LoginAnswer):
    """The person of a token, and whether this session stores it."""

    user_id: str | None
    kept: bool


AUTHENTICATE_DESCRIPTION = (
    "Begin to log a person in: the answer is an address that the person opens in a browser, and what to show when they "
    'come back with a code. Example: {"client_id": "zmemory-mcp", "scope": "tasks.read tasks.write"}. Not needed where '
    "requests carry a key or a token."
)
EXCHANGE_DESCRIPTION = (
    "Get tokens for the code that a person came back with. Give the redirect_uri and the code_verifier that "
    "authenticate answered. They are remembered for this session, where there is one."
)
REFRESH_DESCRIPTION = (
    "Get new tokens for a refresh token, which is used up by it. They are remembered for this session."
)
USER_INFO_DESCRIPTION = "The person in whose name this session acts: id, and e-mail and name where the login says them."
AUTH_STATUS_DESCRIPTION = "Whether this session acts for a person, for whom, by what, and with which scopes."
CLEAR_AUTH_DESCRIPTION = (
    "Forget the token of this session. What a client sends along with its requests is not touched by it."
)
SET_TOKEN_DESCRIPTION = (
    "Act for a person in this session, and in no other, by their token or key. It is checked now and with every call, "  # noqa: S105
    "and forgotten after a day. Nothing is kept without a session, or where tokens come with the requests themselves: "
    "send the token with every request then. A session acts for one person and never for two."
)
TOKEN_NOT_STORED = (
    "It holds, but nothing was kept, since there is no session here to keep it in or tokens come with its requests: "  # noqa: S105
    "send it with every request, as Authorization: Bearer …"
)
TOKEN_STORED = "It is remembered for this session, and for no other."  # noqa: S105
TOKEN_TYPE = "Bearer"  # noqa: S105
OTHER_PERSON = "The credential of this request is another person's than this token; use one of this person's for both"


async def begin_login(app: App, _call: McpCall, request: BeginLoginInput) -> Answer:
    found = app.identity.oauth.authorize_url(request.client_id, request.redirect_uri, request.scope, request.state)
    answer = BeginLoginOutput(
        authorization_url=found.url,
        client_id=found.client_id,
        redirect_uri=found.redirect_uri,
        scope=found.scope,
        state=found.state,
        code_verifier=found.code_verifier,
    )
    return _text_result(
        f"The person opens this address and logs in: {found.url}\n"
        f"They come back to {found.redirect_uri} with a code and the state {found.state}. Call exchange_code_for_token "
        f"with that code, this redirect_uri and the code_verifier {found.code_verifier}",
        answer,
    )


async def exchange_code(app: App, call: McpCall, request: ExchangeCodeInput) -> Answer:
    issued = await app.identity.oauth.exchange(request.code, request.redirect_uri, request.code_verifier or "")
    return await _tokens_result(app, call, issued)


async def refresh_login(app: App, call: McpCall, request: RefreshTokenInput) -> Answer:
    return await _tokens_result(app, call, await app.identity.oauth.refresh(request.refresh_token))


async def get_user_info(app: App, call: McpCall, _given: NoArguments) -> Answer:
    if call.caller.user_id is None or call.request_context.proof is None:
        raise Unauthenticated("Authentication required")
    profile = await app.identity.profile(call.request_context.proof.get_secret_value())
    answer = UserInfoOutput(sub=call.caller.user_id, email=profile.email, name=profile.name)
    known = ", ".join(part for part in (answer.name, answer.email) if part)
    return _text_result(f"You act for {answer.sub}" + (f" ({known})." if known else "."), answer)


async def get_auth_status(_app: App, call: McpCall, _given: NoArguments) -> Answer:
    by = None if call.caller.user_id is None else "token" if call.caller.by_token else "key"
    answer = AuthStatusOutput(
        authenticated=call.caller.user_id is not None,
        user_id=call.caller.user_id,
        agent_id=call.caller.agent_id,
        by=by,
        scopes=None if call.caller.scopes is None else sorted(call.caller.scopes),
        session=call.request_context.session_id is not None,
    )
    if not answer.authenticated:
        return _text_result("Nobody is logged in here. Send a key or a token with your requests, or log in.", answer)
    scopes = "everything" if answer.scopes is None else ", ".join(answer.scopes)
    return _text_result(f"You act for {answer.user_id}, by a {by}, and may do: {scopes}.", answer)


async def clear_auth(app: App, call: McpCall, _given: NoArguments) -> Answer:
    if call.request_context.session_id is not None:
        await app.identity.sessions.forget(call.request_context.session_id)
    return _text_result(
        "This session remembers no token now.", SessionTokenOutput(user_id=call.caller.user_id, kept=False)
    )


async def set_access_token(app: App, call: McpCall, request: SetTokenInput) -> Answer:
    token = strip_bearer(request.access_token.strip())
    user_id, kept = await _store_token(app, call, token)
    return _text_result(
        f"This acts for {user_id}. {TOKEN_STORED if kept else TOKEN_NOT_STORED}",
        SessionTokenOutput(user_id=user_id, kept=kept),
    )


async def _forget_session_token(app: App, call: McpCall) -> None:
    """Delete the token of a session in which another token could not be stored.

    The following calls are for the person of that other token, perhaps for nobody, but not for the previous person.
    """
    session_id = call.request_context.session_id
    if session_id is not None:
        with suppress(Unavailable):
            await app.identity.sessions.forget(session_id)


async def _tokens_result(app: App, call: McpCall, issued: IssuedTokens) -> Answer:
    try:
        _, kept = await _store_token(app, call, issued.access_token)
    except (Conflict, Denied, Invalid):
        # The code is used up, so the client must get the tokens even if they are not stored.
        kept = False
    answer = TokensOutput(
        token_type=TOKEN_TYPE,
        access_token=issued.access_token,
        refresh_token=issued.refresh_token,
        expires_in=issued.expires_in,
        scope=" ".join(sorted(issued.scopes)),
        user_id=issued.user_id,
        kept=kept,
    )
    where = TOKEN_STORED if kept else "Send it with every request, as Authorization: Bearer …"
    return _text_result(
        f"Logged in as {answer.user_id} for {answer.expires_in} s, for: {answer.scope}. The tokens are in the "
        f"structured answer. {where}",
        answer,
    )


async def _store_token(app: App, call: McpCall, token: str) -> tuple[str, bool]:
    """The person of a token, and whether it is stored. An invalid token is a wrong argument, not a reason to log in."""
    try:
        credential = await app.identity.authenticate(token)
        if credential.user_id is None:
            raise Invalid("This names no person; give one that was made for somebody")
        if call.request_context.session_id is None:
            return credential.user_id, False
        _check_person(call, credential.user_id)
        if call.request_context.person_in_request:
            # The session no longer stores a token: the token that comes with the requests counts.
            return credential.user_id, False
        await app.identity.sessions.remember(call.request_context.session_id, token)
    except Unauthenticated as error:
        raise Invalid(str(error)) from error
    return credential.user_id, True


def _check_person(call: McpCall, user_id: str) -> None:
    """Refuse a useless token: a client that is not trusted acts only for its own person."""
    own = call.caller.user_id or call.request_context.only_person
    if not call.request_context.trusted and own != user_id:
        raise Denied(CLIENT_NOT_TRUSTED if own is None else OTHER_PERSON)


def _text_result(text: str, answer: LoginAnswer) -> Answer:
    return Answer(text, answer)


def _login_operation(
    name: str,
    title: str,
    description: str,
    request: type[OperationRequest],
    response: type[LoginAnswer],
    run: Run,
    *,
    effect: Effect = Effect.ADDS,
    after_failure: Callable[[Any, Any], Awaitable[None]] | None = None,
) -> Operation:
    """Declare a login tool. No login tool is for agents: they already act for a known person."""
    return Operation(
        name=name,
        summary=title,
        request=request,
        run=run,
        effect=effect,
        mcp=McpTool(
            title=title,
            description=description,
            path=McpPath.MEMORY,
            response=response,
            for_agent=False,
            plain_errors=True,
            handed_to_agents=False,
            after_failure=after_failure,
        ),
    )


LOGIN_OPERATIONS: tuple[Operation, ...] = (
    _login_operation(
        "authenticate", "Begin a login", AUTHENTICATE_DESCRIPTION, BeginLoginInput, BeginLoginOutput, begin_login
    ),
    _login_operation(
        "exchange_code_for_token",
        "Code for tokens",
        EXCHANGE_DESCRIPTION,
        ExchangeCodeInput,
        TokensOutput,
        exchange_code,
    ),
    _login_operation(
        "refresh_token", "Renew a login", REFRESH_DESCRIPTION, RefreshTokenInput, TokensOutput, refresh_login
    ),
    _login_operation(
        "get_user_info",
        "Who you act for",
        USER_INFO_DESCRIPTION,
        NoArguments,
        UserInfoOutput,
        get_user_info,
        effect=Effect.READS,
    ),
    _login_operation(
        "get_auth_status",
        "Whether logged in",
        AUTH_STATUS_DESCRIPTION,
        NoArguments,
        AuthStatusOutput,
        get_auth_status,
        effect=Effect.READS,
    ),
    _login_operation(
        "clear_auth", "Forget the token", CLEAR_AUTH_DESCRIPTION, NoArguments, SessionTokenOutput, clear_auth
    ),
    _login_operation(
        "set_access_token",
        "Act for a person",
        SET_TOKEN_DESCRIPTION,
        SetTokenInput,
        SessionTokenOutput,
        set_access_token,
        after_failure=_forget_session_token,
    ),
)


def with_login_tools(app: App, operations: Sequence[BoundOperation]) -> Sequence[BoundOperation]:
    """The operations, with the login tools before those that concern a person's records."""
    logins = [app.bind(operation, app) for operation in LOGIN_OPERATIONS]
    first = next((at for at, one in enumerate(operations) if _is_for_memory(one)), len(operations))
    return [*operations[:first], *logins, *operations[first:]]


def _is_for_memory(bound: BoundOperation) -> bool:
    return bound.operation.mcp is not None and bound.operation.mcp.path is McpPath.MEMORY
