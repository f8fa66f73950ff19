"""The tools by which clients of the older kind log a person in, for their own session alone."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from pydantic import BaseModel

from frontdesk.app import App
from frontdesk.errors import Conflict, Denied, Invalid, Unauthenticated, Unavailable
from frontdesk.identity.behalf import NOT_TRUSTED
from frontdesk.identity.model import Caller
from frontdesk.identity.oauth.model import Issued
from frontdesk.surfaces.behalf import without_scheme
from frontdesk.surfaces.mcp.core import NoArguments
from frontdesk.surfaces.mcp.line import Line
from frontdesk.surfaces.mcp.memory.login import (
    Authenticate,
    Exchange,
    KeptAnswer,
    LoginAnswer,
    Refresh,
    SetToken,
    StandingAnswer,
    TokensAnswer,
    UserAnswer,
)
from frontdesk.surfaces.mcp.tool import Answer, Door, Result, ToolSpec
from frontdesk.surfaces.visit import Visit

AUTHENTICATE = (
    "Begin to log a person in: the answer is an address that the person opens in a browser, and what to show when they "
    'come back with a code. Example: {"client_id": "zmemory-mcp", "scope": "tasks.read tasks.write"}. Not needed where '
    "requests carry a key or a token."
)
EXCHANGE = (
    "Get tokens for the code that a person came back with. Give the redirect_uri and the code_verifier that "
    "authenticate answered. They are remembered for this session, where there is one."
)
REFRESH = "Get new tokens for a refresh token, which is used up by it. They are remembered for this session."
USER = "The person in whose name this session acts: id, and e-mail and name where the login says them."
STANDING = "Whether this session acts for a person, for whom, by what, and with which scopes."
CLEAR = "Forget the token of this session. What a client sends along with its requests is not touched by it."
ACT_FOR = (
    "Act for a person in this session, and in no other, by their token or key. It is checked now and with every call, "
    "and forgotten after a day. Nothing is kept without a session, or where tokens come with the requests themselves: "
    "send the token with every request then. A session acts for one person and never for two."
)
NOT_KEPT = (
    "It holds, but nothing was kept, since there is no session here to keep it in or tokens come with its requests: "
    "send it with every request, as Authorization: Bearer …"
)
KEPT = "It is remembered for this session, and for no other."
BEARER = "Bearer"
HAS_OWN = "The credential of this request is another person's than this token; use one of this person's for both"


async def authenticate(app: App, _caller: Caller, given: Authenticate) -> Result:
    found = app.identity.oauth.authorize_url(given.client_id, given.redirect_uri, given.scope, given.state)
    answer = LoginAnswer(
        authorization_url=found.url,
        client_id=found.client_id,
        redirect_uri=found.redirect_uri,
        scope=found.scope,
        state=found.state,
        code_verifier=found.code_verifier,
    )
    return _told(
        f"The person opens this address and logs in: {found.url}\n"
        f"They come back to {found.redirect_uri} with a code and the state {found.state}. Call exchange_code_for_token "
        f"with that code, this redirect_uri and the code_verifier {found.code_verifier}",
        answer,
    )


async def exchange(app: App, caller: Caller, given: Exchange, line: Line) -> Result:
    issued = await app.identity.oauth.exchange(given.code, given.redirect_uri, given.code_verifier or "")
    return await _issued(app, caller, line, issued)


async def refresh(app: App, caller: Caller, given: Refresh, line: Line) -> Result:
    return await _issued(app, caller, line, await app.identity.oauth.refresh(given.refresh_token))


async def user_info(app: App, caller: Caller, _given: NoArguments, line: Line) -> Result:
    if caller.user_id is None or line.proof is None:
        raise Unauthenticated("Authentication required")
    profile = await app.identity.profile(line.proof.get_secret_value())
    answer = UserAnswer(sub=caller.user_id, email=profile.email, name=profile.name)
    known = ", ".join(part for part in (answer.name, answer.email) if part)
    return _told(f"You act for {answer.sub}" + (f" ({known})." if known else "."), answer)


async def standing(_app: App, caller: Caller, _given: NoArguments, line: Line) -> Result:
    by = None if caller.user_id is None else "token" if caller.by_token else "key"
    answer = StandingAnswer(
        authenticated=caller.user_id is not None,
        user_id=caller.user_id,
        agent_id=caller.agent_id,
        by=by,
        scopes=None if caller.scopes is None else sorted(caller.scopes),
        session=line.session_id is not None,
    )
    if not answer.authenticated:
        return _told("Nobody is logged in here. Send a key or a token with your requests, or log in.", answer)
    scopes = "everything" if answer.scopes is None else ", ".join(answer.scopes)
    return _told(f"You act for {answer.user_id}, by a {by}, and may do: {scopes}.", answer)


async def clear(app: App, caller: Caller, _given: NoArguments, line: Line) -> Result:
    if line.session_id is not None:
        await app.identity.sessions.forget(line.session_id)
    return _told("This session remembers no token now.", KeptAnswer(user_id=caller.user_id, kept=False))


async def set_token(app: App, caller: Caller, given: SetToken, line: Line) -> Result:
    token = without_scheme(given.access_token.strip())
    user_id, kept = await _keep(app, caller, line, token)
    return _told(f"This acts for {user_id}. {KEPT if kept else NOT_KEPT}", KeptAnswer(user_id=user_id, kept=kept))


async def _forget_who_was_here(app: App, visit: Visit) -> None:
    """Forget the token of a session in which another could not be left.

    The calls that follow are for whomever that was meant for, perhaps nobody, and not for the person before.
    """
    if visit.session_id is not None:
        with suppress(Unavailable):
            await app.identity.sessions.forget(visit.session_id)


async def _issued(app: App, caller: Caller, line: Line, issued: Issued) -> Result:
    try:
        _, kept = await _keep(app, caller, line, issued.access_token)
    except (Conflict, Denied, Invalid):
        # The code is used up: whoever has brought it must have the tokens, wherever they keep them.
        kept = False
    answer = TokensAnswer(
        token_type=BEARER,
        access_token=issued.access_token,
        refresh_token=issued.refresh_token,
        expires_in=issued.expires_in,
        scope=" ".join(sorted(issued.scopes)),
        user_id=issued.user_id,
        kept=kept,
    )
    where = KEPT if kept else "Send it with every request, as Authorization: Bearer …"
    return _told(
        f"Logged in as {answer.user_id} for {answer.expires_in} s, for: {answer.scope}. The tokens are in the "
        f"structured answer. {where}",
        answer,
    )


async def _keep(app: App, caller: Caller, line: Line, token: str) -> tuple[str, bool]:
    """Whose token it is, and whether it is kept; one that does not hold is a wrong argument, and no call to log in."""
    try:
        credential = await app.identity.authenticate(token)
        if credential.user_id is None:
            raise Invalid("This names no person; give one that was made for somebody")
        if line.session_id is None:
            return credential.user_id, False
        _check_place(caller, line, credential.user_id)
        if line.carried:
            # The session keeps nothing any more; what comes with the requests is what counts.
            return credential.user_id, False
        await app.identity.sessions.remember(line.session_id, token)
    except Unauthenticated as error:
        raise Invalid(str(error)) from error
    return credential.user_id, True


def _check_place(caller: Caller, line: Line, user_id: str) -> None:
    """Refuse to keep what would be of no use: a client that is not trusted acts for its own person alone."""
    own = caller.user_id or line.only_for
    if not line.trusted and own != user_id:
        raise Denied(NOT_TRUSTED if own is None else HAS_OWN)


def _told(text: str, answer: Answer) -> Result:
    return Result([{"type": "text", "text": text}], answer.model_dump(mode="json"))


def _spec(
    name: str,
    title: str,
    description: str,
    arguments: type[BaseModel],
    answer: type[Answer],
    run: Callable[..., Awaitable[Result]],
    *,
    on_line: bool = True,
    read_only: bool = False,
    after_failure: Callable[[App, Visit], Awaitable[None]] | None = None,
) -> ToolSpec:
    """None is for agents: they act for somebody who is known already."""
    return ToolSpec(
        name=name,
        title=title,
        description=description,
        arguments=arguments,
        answer=answer,
        run=run,
        door=Door.MEMORY,
        for_agent=False,
        read_only=read_only,
        destructive=None if read_only else False,
        on_line=on_line,
        plain=True,
        handed=False,
        after_failure=after_failure,
    )


AUTH: tuple[ToolSpec, ...] = (
    _spec("authenticate", "Begin a login", AUTHENTICATE, Authenticate, LoginAnswer, authenticate, on_line=False),
    _spec("exchange_code_for_token", "Code for tokens", EXCHANGE, Exchange, TokensAnswer, exchange),
    _spec("refresh_token", "Renew a login", REFRESH, Refresh, TokensAnswer, refresh),
    _spec("get_user_info", "Who you act for", USER, NoArguments, UserAnswer, user_info, read_only=True),
    _spec("get_auth_status", "Whether logged in", STANDING, NoArguments, StandingAnswer, standing, read_only=True),
    _spec("clear_auth", "Forget the token", CLEAR, NoArguments, KeptAnswer, clear),
    _spec(
        *("set_access_token", "Act for a person", ACT_FOR, SetToken, KeptAnswer, set_token),
        after_failure=_forget_who_was_here,
    ),
)
