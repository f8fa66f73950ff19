"""Who looks at the pages: whoever sits at this machine, or somebody with a key or token that may run the house."""

from frontdesk.app import App
from frontdesk.errors import Denied, FrontdeskError
from frontdesk.identity.inbound import traced
from frontdesk.identity.model import Caller, Credential, Signals, Source
from frontdesk.identity.rights import EVERYTHING, HOUSE_ADMIN
from frontdesk.surfaces.gate import presented
from frontdesk.surfaces.visit import Visit
from frontdesk.surfaces.web.cookies import SESSION, Jar

NOT_THIS_KEY = (
    f"The pages are for whoever runs Frontdesk: sign in with a key that carries the scope '{HOUSE_ADMIN}' "
    f"(frontdesk keys create --user YOU --scope {HOUSE_ADMIN})"
)


async def shown(app: App, visit: Visit) -> str | None:
    """The key or token that somebody signed in with, unchecked; it is checked anew with every request."""
    return await app.identity.sessions.recall(Jar.of(app.settings, visit).kept(SESSION))


def is_local(app: App, visit: Visit) -> bool:
    """Whether it comes from this machine, where nobody has to prove who they are."""
    return not (app.settings.auth_required or visit.forwarded)


def require_house(app: App, visit: Visit, credential: Credential) -> None:
    """Refuse a key or token that may not run the house; at this machine one without limits may, but no agent's."""
    unlimited = credential.scopes is None and credential.named_agent is None and is_local(app, visit)
    if not unlimited and HOUSE_ADMIN not in (credential.scopes or ()):
        raise Denied(NOT_THIS_KEY)


def operator(app: App, visit: Visit) -> Caller:
    """The caller that pages act as; refuses whoever may not run the house."""
    credential = visit.credential
    try:
        if credential is None:
            if not is_local(app, visit):
                raise Denied(NOT_THIS_KEY)
            return Caller(visit.request_id, local=True, any_agent=True)
        require_house(app, visit, credential)
    except Denied as error:
        error.trace = traced(Signals(visit.request_id, visit.said.get("x-agent-id"), credential=credential))
        raise
    return Caller(
        visit.request_id,
        None,
        credential.user_id,
        Source.CREDENTIAL,
        verified=True,
        scopes=EVERYTHING,
        any_agent=True,
        credential_id=credential.id,
    )


async def may_go_on(app: App, visit: Visit) -> bool:
    """Whether who was let in some time ago would be let in now: a key may have been revoked, a session ended."""
    if visit.credential is None:
        return True
    try:
        text = presented(visit.said) or await shown(app, visit)
        if text is None:
            return False
        require_house(app, visit, await app.identity.authenticate(text))
    except FrontdeskError:
        return False
    return True
