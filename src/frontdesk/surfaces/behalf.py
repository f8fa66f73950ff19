"""Whom a request is for: a trusted client may name a person by their token, with each request or once a session."""

from contextlib import suppress
from dataclasses import replace

from pydantic import SecretStr

from frontdesk.errors import Unauthenticated
from frontdesk.identity import behalf
from frontdesk.identity.behalf import NAMES_NO_PERSON
from frontdesk.identity.keys import PREFIXES
from frontdesk.identity.oauth.model import ACCESS_PREFIX
from frontdesk.identity.service import Identity
from frontdesk.surfaces.visit import Visit

HEADER = "x-user-auth-token"
BEARER = "bearer "
# What we hand out is good nowhere else.
OURS = (*PREFIXES, ACCESS_PREFIX)


async def show(identity: Identity, visit: Visit, text: str) -> None:
    """The request's own credential, as it was shown."""
    visit.credential = await identity.authenticate(text)
    _note(visit, text)


def person_token(visit: Visit) -> str:
    """The token of a person that stands beside the request's own credential, or alone."""
    return without_scheme(visit.said.get(HEADER, ""))


async def show_person(identity: Identity, visit: Visit, token: str) -> None:
    """A person's own token that stands alone: it counts as if it were the request's credential.

    Nobody is trusted to name people by it: a key for every agent is no agent's here.
    """
    person = await identity.authenticate(token)
    if person.user_id is None:
        raise Unauthenticated(NAMES_NO_PERSON)
    visit.credential = replace(person, agent_id=person.named_agent)
    _note(visit, token)


async def speak_for(identity: Identity, visit: Visit, token: str, *, local: bool) -> None:
    """The person whom a client names that may name people."""
    behalf.check_trust(visit.credential, local=local)
    await _take(identity, visit, token)


async def recall(identity: Identity, visit: Visit, *, local: bool) -> None:
    """The person whose token was left for this session, for this one request that shows nobody."""
    kept = await identity.sessions.recall(visit.session_id)
    if kept is not None:
        behalf.check_trust(visit.credential, local=local)
        # One that was left a while ago may be over by now: there is no person then, and a new one can be left.
        with suppress(Unauthenticated):
            await _take(identity, visit, kept)


def without_scheme(text: str) -> str:
    """A token that may stand there with `Bearer` before it."""
    return text[len(BEARER) :].strip() if text[: len(BEARER)].lower() == BEARER else text


async def _take(identity: Identity, visit: Visit, token: str) -> None:
    visit.credential = behalf.on_behalf(visit.credential, await identity.authenticate(token))
    _note(visit, token)


def _note(visit: Visit, text: str) -> None:
    visit.proof = SecretStr(text)
    visit.token = None if text.startswith(OURS) else visit.proof
