"""Offers the tools of the memory capability, and tools that log a person in for a client's session."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from pydantic import BaseModel, Field

from frontdesk.app import App, McpPath
from frontdesk.errors import Conflict, Denied, Invalid, Unauthenticated, Unavailable
from frontdesk.identity.inbound import CLIENT_NOT_TRUSTED
from frontdesk.identity.model import Caller, IssuedTokens
from frontdesk.interfaces.http.context import RequestContext
from frontdesk.interfaces.http.middleware import strip_bearer
from frontdesk.interfaces.mcp.context import CallContext
from frontdesk.interfaces.mcp.tool_spec import McpToolInput, McpToolOutput, McpToolResult, NoArguments, ToolSpec
from frontdesk.memory.model import PersonScope
from frontdesk.memory.operations.base import MemoryRequest, MemoryTool, MemoryToolResult, StatusSources
from frontdesk.memory.operations.table import (
    EXTRA_TOOLS,
    RECORD_TOOLS,
    STATUS_DESCRIPTION,
    STATUS_NAME,
    STATUS_TITLE,
    GetSystemStatus,
    SystemStatusAnswer,
    system_status_tool,
)


class BeginLoginInput(McpToolInput):
    """The client that logs in, and the requested scopes."""

    client_id: str = Field(min_length=1, max_length=200)
    redirect_uri: str | None = Field(None, max_length=2000, description="Where the person is sent back to.")
    scope: str | None = Field(None, max_length=2000, description="What the login is for, space separated.")
    state: str | None = Field(None, max_length=2000, description="Comes back with the code; made up if left out.")


class ExchangeCodeInput(McpToolInput):
    """The code, and the proof that this client requested it."""

    code: str = Field(min_length=1, max_length=2000)
    redirect_uri: str = Field(min_length=1, max_length=2000)
    code_verifier: str | None = Field(None, max_length=200, description="As authenticate answered it.")


class RefreshTokenInput(McpToolInput):
    """The refresh token of a login."""

    refresh_token: str = Field(min_length=1, max_length=10_000)


class SetTokenInput(McpToolInput):
    """The token to act with."""

    access_token: str = Field(min_length=1, max_length=10_000, description="The person's token or key.")


class BeginLoginOutput(McpToolOutput):
    """The address where the person logs in. `code_verifier` is for the exchange of the code."""

    authorization_url: str
    client_id: str
    redirect_uri: str
    scope: str
    state: str
    code_verifier: str


class TokensOutput(McpToolOutput):
    """Tokens, shown once. `kept`: whether this session stores the access token."""

    token_type: str
    access_token: str
    refresh_token: str
    expires_in: int
    scope: str
    user_id: str
    kept: bool


class UserInfoOutput(McpToolOutput):
    """A person."""

    sub: str
    email: str | None
    name: str | None


class AuthStatusOutput(McpToolOutput):
    """The person and agent of this session. Without `scopes`, everything is allowed."""

    authenticated: bool
    user_id: str | None
    agent_id: str | None
    by: str | None
    scopes: list[str] | None
    session: bool


class SessionTokenOutput(McpToolOutput):
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


async def begin_login(app: App, _caller: Caller, request: BeginLoginInput) -> McpToolResult:
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


async def exchange_code(app: App, caller: Caller, request: ExchangeCodeInput, call: CallContext) -> McpToolResult:
    issued = await app.identity.oauth.exchange(request.code, request.redirect_uri, request.code_verifier or "")
    return await _tokens_result(app, caller, call, issued)


async def refresh_login(app: App, caller: Caller, request: RefreshTokenInput, call: CallContext) -> McpToolResult:
    return await _tokens_result(app, caller, call, await app.identity.oauth.refresh(request.refresh_token))


async def get_user_info(app: App, caller: Caller, _given: NoArguments, call: CallContext) -> McpToolResult:
    if caller.user_id is None or call.request_context.proof is None:
        raise Unauthenticated("Authentication required")
    profile = await app.identity.profile(call.request_context.proof.get_secret_value())
    answer = UserInfoOutput(sub=caller.user_id, email=profile.email, name=profile.name)
    known = ", ".join(part for part in (answer.name, answer.email) if part)
    return _text_result(f"You act for {answer.sub}" + (f" ({known})." if known else "."), answer)


async def get_auth_status(_app: App, caller: Caller, _given: NoArguments, call: CallContext) -> McpToolResult:
    by = None if caller.user_id is None else "token" if caller.by_token else "key"
    answer = AuthStatusOutput(
        authenticated=caller.user_id is not None,
        user_id=caller.user_id,
        agent_id=caller.agent_id,
        by=by,
        scopes=None if caller.scopes is None else sorted(caller.scopes),
        session=call.request_context.session_id is not None,
    )
    if not answer.authenticated:
        return _text_result("Nobody is logged in here. Send a key or a token with your requests, or log in.", answer)
    scopes = "everything" if answer.scopes is None else ", ".join(answer.scopes)
    return _text_result(f"You act for {answer.user_id}, by a {by}, and may do: {scopes}.", answer)


async def clear_auth(app: App, caller: Caller, _given: NoArguments, call: CallContext) -> McpToolResult:
    if call.request_context.session_id is not None:
        await app.identity.sessions.forget(call.request_context.session_id)
    return _text_result("This session remembers no token now.", SessionTokenOutput(user_id=caller.user_id, kept=False))


async def set_access_token(app: App, caller: Caller, request: SetTokenInput, call: CallContext) -> McpToolResult:
    token = strip_bearer(request.access_token.strip())
    user_id, kept = await _store_token(app, caller, call, token)
    return _text_result(
        f"This acts for {user_id}. {TOKEN_STORED if kept else TOKEN_NOT_STORED}",
        SessionTokenOutput(user_id=user_id, kept=kept),
    )


async def _forget_session_token(app: App, context: RequestContext) -> None:
    """Delete the token of a session in which another token could not be stored.

    The following calls are for the person of that other token, perhaps for nobody, but not for the previous person.
    """
    if context.session_id is not None:
        with suppress(Unavailable):
            await app.identity.sessions.forget(context.session_id)


async def _tokens_result(app: App, caller: Caller, call: CallContext, issued: IssuedTokens) -> McpToolResult:
    try:
        _, kept = await _store_token(app, caller, call, issued.access_token)
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


async def _store_token(app: App, caller: Caller, call: CallContext, token: str) -> tuple[str, bool]:
    """The person of a token, and whether it is stored. An invalid token is a wrong argument, not a reason to log in."""
    try:
        credential = await app.identity.authenticate(token)
        if credential.user_id is None:
            raise Invalid("This names no person; give one that was made for somebody")
        if call.request_context.session_id is None:
            return credential.user_id, False
        _check_person(caller, call, credential.user_id)
        if call.request_context.person_in_request:
            # The session no longer stores a token: the token that comes with the requests counts.
            return credential.user_id, False
        await app.identity.sessions.remember(call.request_context.session_id, token)
    except Unauthenticated as error:
        raise Invalid(str(error)) from error
    return credential.user_id, True


def _check_person(caller: Caller, call: CallContext, user_id: str) -> None:
    """Refuse a useless token: a client that is not trusted acts only for its own person."""
    own = caller.user_id or call.request_context.only_person
    if not call.request_context.trusted and own != user_id:
        raise Denied(CLIENT_NOT_TRUSTED if own is None else OTHER_PERSON)


def _text_result(text: str, answer: McpToolOutput) -> McpToolResult:
    return McpToolResult([{"type": "text", "text": text}], answer.model_dump(mode="json"))


def _login_tool(
    name: str,
    title: str,
    description: str,
    arguments: type[BaseModel],
    answer: type[McpToolOutput],
    run: Callable[..., Awaitable[McpToolResult]],
    *,
    on_line: bool = True,
    read_only: bool = False,
    after_failure: Callable[[App, RequestContext], Awaitable[None]] | None = None,
) -> ToolSpec:
    """Declare a login tool. No login tool is for agents: they already act for a known person."""
    return ToolSpec(
        name=name,
        title=title,
        description=description,
        arguments=arguments,
        answer=answer,
        run=run,
        mcp_path=McpPath.MEMORY,
        for_agent=False,
        read_only=read_only,
        destructive=None if read_only else False,
        needs_context=on_line,
        plain_errors=True,
        handed_to_agents=False,
        after_failure=after_failure,
    )


LOGIN_TOOLS: tuple[ToolSpec, ...] = (
    _login_tool(
        "authenticate",
        "Begin a login",
        AUTHENTICATE_DESCRIPTION,
        BeginLoginInput,
        BeginLoginOutput,
        begin_login,
        on_line=False,
    ),
    _login_tool(
        "exchange_code_for_token",
        "Code for tokens",
        EXCHANGE_DESCRIPTION,
        ExchangeCodeInput,
        TokensOutput,
        exchange_code,
    ),
    _login_tool("refresh_token", "Renew a login", REFRESH_DESCRIPTION, RefreshTokenInput, TokensOutput, refresh_login),
    _login_tool(
        "get_user_info",
        "Who you act for",
        USER_INFO_DESCRIPTION,
        NoArguments,
        UserInfoOutput,
        get_user_info,
        read_only=True,
    ),
    _login_tool(
        "get_auth_status",
        "Whether logged in",
        AUTH_STATUS_DESCRIPTION,
        NoArguments,
        AuthStatusOutput,
        get_auth_status,
        read_only=True,
    ),
    _login_tool("clear_auth", "Forget the token", CLEAR_AUTH_DESCRIPTION, NoArguments, SessionTokenOutput, clear_auth),
    _login_tool(
        *(
            "set_access_token",
            "Act for a person",
            SET_TOKEN_DESCRIPTION,
            SetTokenInput,
            SessionTokenOutput,
            set_access_token,
        ),
        after_failure=_forget_session_token,
    ),
)

# An agent uses these tools to report on its work, under its own name.
AGENT_WORK_TOOLS = frozenset({"accept_ai_task", "update_ai_task", "complete_ai_task", "fail_ai_task"})


def _memory_tool(tool: MemoryTool) -> ToolSpec:
    """Declare a memory tool for MCP. Agents on a host do not get these: so many tools would hide their other tools."""

    async def run(app: App, caller: Caller, request: MemoryRequest) -> McpToolResult:
        return _memory_result(await tool.run(app.memory, PersonScope.for_caller(caller), request))

    return ToolSpec(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        arguments=tool.arguments,
        answer=tool.answer,
        run=run,
        mcp_path=McpPath.MEMORY,
        for_agent=tool.name in AGENT_WORK_TOOLS,
        read_only=tool.read_only,
        destructive=tool.destructive,
        plain_errors=True,
        handed_to_agents=False,
        outside_contract=tool in EXTRA_TOOLS,
    )


def _memory_result(told: MemoryToolResult) -> McpToolResult:
    return McpToolResult([{"type": "text", "text": told.text}], told.answer.model_dump(mode="json"))


async def _system_status(app: App, caller: Caller, request: GetSystemStatus) -> McpToolResult:
    sources = StatusSources(app.check_parts, app.journal)
    return _memory_result(await system_status_tool(sources, app.memory, PersonScope.for_caller(caller), request))


STATUS_TOOL = ToolSpec(
    name=STATUS_NAME,
    title=STATUS_TITLE,
    description=STATUS_DESCRIPTION,
    arguments=GetSystemStatus,
    answer=SystemStatusAnswer,
    run=_system_status,
    mcp_path=McpPath.MEMORY,
    for_agent=False,
    plain_errors=True,
    handed_to_agents=False,
)

MEMORY_TOOLS: tuple[ToolSpec, ...] = (*LOGIN_TOOLS, STATUS_TOOL, *map(_memory_tool, (*RECORD_TOOLS, *EXTRA_TOOLS)))
