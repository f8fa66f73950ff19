"""On whose behalf a client calls that is trusted to name people by their tokens: pure, from two credentials."""

from dataclasses import replace

from frontdesk.errors import Denied, Unauthenticated
from frontdesk.identity import rights
from frontdesk.identity.model import ANY_AGENT, KEY, Credential

NOT_TRUSTED = (
    "A person's token is taken from a trusted client alone: a program on this machine, or one with a key for every "
    "agent (frontdesk keys create --agent '*'); send the token as Authorization: Bearer … instead"
)

NAMES_NO_PERSON = "The token in X-User-Auth-Token names no person"


def is_trusted(credential: Credential | None, *, local: bool) -> bool:
    """A platform, which has a key for every agent; and at this machine whoever shows nothing."""
    return local if credential is None else credential.agent_id == ANY_AGENT


def check_trust(credential: Credential | None, *, local: bool) -> None:
    """Refuse a client that speaks for people and may not; one that has its own person may repeat who that is."""
    if not is_trusted(credential, local=local) and (credential is None or credential.user_id is None):
        raise Denied(NOT_TRUSTED)


def on_behalf(client: Credential | None, person: Credential) -> Credential:
    """The client's agent and the person, with what both may do; it goes by what proves the person."""
    if person.user_id is None:
        raise Unauthenticated(NAMES_NO_PERSON)
    # Who a token was issued to is no agent of ours: that is for the request itself to name. A key is bound to one.
    bound = person.named_agent if person.id.startswith(KEY) else None
    if client is None:
        return replace(person, agent_id=bound)
    if client.user_id is not None and client.user_id != person.user_id:
        raise Denied("X-User-Auth-Token is another person's than the credential of this request; send one of them")
    if bound is not None and client.named_agent not in (None, bound):
        raise Denied("The key in X-User-Auth-Token is bound to another agent than the credential of this request")
    return replace(person, agent_id=bound or client.agent_id, scopes=rights.both(client.scopes, person.scopes))
