"""What one room does for another: made here, since neighbours do not know each other."""

import os
import secrets
from collections import ChainMap
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from frontdesk.agents.blocks import PER_PERSON, row_of
from frontdesk.agents.host import AgentHost
from frontdesk.agents.turns.service import Turns
from frontdesk.db import leaving
from frontdesk.db.engine import Database
from frontdesk.errors import FrontdeskError, MissingScope, Unavailable
from frontdesk.identity.model import Caller, Source
from frontdesk.identity.rights import SCHEDULES_WRITE, without_others
from frontdesk.identity.store import KeyStore
from frontdesk.journal.service import Journal
from frontdesk.loop.mcp.model import OAuth, bare_token
from frontdesk.loop.text import one_line
from frontdesk.memory.people.service import Elsewhere, Forgotten
from frontdesk.memory.scope import Scope
from frontdesk.platform.errors import DiscoveryFailed
from frontdesk.schedule.asked import Asked
from frontdesk.schedule.service import Schedules
from frontdesk.settings import PlatformOAuth, Settings
from frontdesk.tools.catalogue.naming import apart
from frontdesk.tools.catalogue.roster.platform import Discovered, Platform
from frontdesk.tools.catalogue.servers import Origin, ServerSpec
from frontdesk.tools.gateway.exchange import Exchange
from frontdesk.tools.service import Tools
from frontdesk.workspace.mirror import Mirror

if TYPE_CHECKING:
    from frontdesk.agents.letta.host import LettaHost
    from frontdesk.platform.discovery import Discovery, FoundServer

# Agents that a task's assignee is looked for among, by name.
LISTED = 1_000
LONGEST_REASON = 300


class Waking:
    """Has the scheduler prompt an agent when a person's task is due."""

    def __init__(self, schedules: Schedules) -> None:
        self._schedules = schedules

    async def schedule(self, scope: Scope, agent_id: str, prompt: str, at: datetime) -> int:
        """The number of a new schedule, made by the agent for the person."""
        # Who may write tasks may not for that have agents prompted; and the run has the rights of whoever wrote this.
        if scope.scopes is not None and SCHEDULES_WRITE not in scope.scopes:
            raise MissingScope(SCHEDULES_WRITE)
        asked = Asked(prompt, time=at.isoformat())
        own = replace(_acting(scope, agent_id), scopes=without_others(scope.scopes))
        return (await self._schedules.add(own, asked)).schedule.id

    async def cancel(self, scope: Scope, schedule_id: int) -> None:
        await self._schedules.cancel(_acting(scope, None), schedule_id)


def _acting(scope: Scope, agent_id: str | None) -> Caller:
    """The person, or an agent that works for them; that it is so, this house knows itself."""
    request_id = f"task-{secrets.token_hex(8)}"
    proof = scope.credential_id
    return Caller(request_id, agent_id, scope.user_id, Source.CREDENTIAL, verified=True, credential_id=proof)


class Names:
    """Knows the agents of the host by id and by name."""

    def __init__(self, host: AgentHost) -> None:
        self._host = host

    async def name_of(self, agent_id: str) -> str | None:
        """What an agent is called; None where the host does not know it, or does not answer."""
        try:
            found = await self._host.find(agent_id)
        except Unavailable:
            return None
        return None if found is None else found.name

    async def id_of(self, text: str) -> str | None:
        """The agent that is meant by an id, or by a name that only one has."""
        found = await self._host.find(text)
        if found is not None:
            return found.id
        named = [one.id for one in await self._host.list(LISTED) if one.name.casefold() == text.casefold()]
        return named[0] if len(named) == 1 else None


def elsewhere(
    database: Database, journal: Journal, keys: KeyStore, turns: Turns, tools: Tools, mirror: Mirror
) -> Sequence[Elsewhere]:
    """What is kept of a person besides their own records."""

    async def told(user_id: str) -> Sequence[Mapping[str, Any]]:
        return [asdict(entry) for entry in await journal.of_person(user_id)]

    async def named(user_id: str) -> Sequence[Mapping[str, Any]]:
        theirs = [key for key in await keys.list() if key.user_id == user_id]
        return [{"id": key.id, "name": key.name, "created_at": key.created_at} for key in theirs]

    def of_agents(name: str) -> Callable[[str], Awaitable[Sequence[Mapping[str, Any]]]]:
        async def told_by_agents(user_id: str) -> Sequence[Mapping[str, Any]]:
            return await leaving.told_of(database, name, user_id, row_of(user_id))

        return told_by_agents

    async def forget(user_id: str) -> Forgotten:
        # What is under way for them would write again what is deleted.
        await turns.cancel_person(user_id)
        await tools.usage.flush()
        await tools.learning.flush()
        await tools.learning.forget(f"user:{user_id}")
        gone = await leaving.forget_person(database, user_id, row_of(user_id), PER_PERSON)
        await mirror.forget(user_id, gone.agents)
        return Forgotten(gone.count, gone.left)

    return (
        Elsewhere("journal", told, journal.forget_person),
        Elsewhere("api_keys", named),
        *(Elsewhere(name, of_agents(name)) for name in leaving.TOLD),
        Elsewhere("house", None, forget),
    )


def of_letta(host: "LettaHost") -> Sequence[Elsewhere]:
    """A person's own agents on a Letta server; first of all, while turns still tell which shared ones they used."""

    async def forget(user_id: str) -> Forgotten:
        return Forgotten(*await host.forget_person(user_id))

    return (Elsewhere("letta_agents", host.kept_of, forget),)


def platform_of(settings: Settings, exchange: Exchange) -> Platform | None:
    """What Agent 365 names for the tools catalogue, with tokens of its own for each server."""
    if settings.platform_app_id is None:
        return None
    discovery = _discovery(settings, settings.platform_app_id, exchange)

    async def discover() -> Discovered:
        try:
            found = await discovery.find()
        except FrontdeskError as error:
            raise _told(error) from None
        # Said twice it is still one.
        servers = list(dict.fromkeys(found.servers))
        names = apart([(server.name, server.unique_name) for server in servers])
        specs = [_spec(name, server, settings.platform_oauth) for name, server in zip(names, servers, strict=True)]
        return Discovered(specs, found.notes)

    def recall(spec: ServerSpec) -> ServerSpec | None:
        said = spec.token_for
        if not {"server", "scope"} <= said.keys():
            return None
        server = discovery.equip(said["server"], said["server"], spec.url, said["scope"])
        return None if server is None else _spec(spec.name, server, settings.platform_oauth)

    return Platform(discover, recall)


async def platform_troubles(settings: Settings) -> Sequence[str]:
    """What is wrong with Agent 365 and the servers it names; it is asked for that."""
    exchange = Exchange()
    try:
        platform = platform_of(settings, exchange)
        return [] if platform is None else (await platform.discover()).notes
    except Unavailable as error:
        return [str(error)]
    finally:
        await exchange.close()


def _discovery(settings: Settings, app_id: str, exchange: Exchange) -> "Discovery":
    # Most houses never ask the platform, and need not load what does.
    from frontdesk.platform.discovery import Discovery  # noqa: PLC0415

    oauth, token = settings.platform_oauth, settings.platform_token
    fetch = None if oauth is None else partial(_fetch, exchange, oauth)
    named = {"AGENT365_APPLICATION_NAME": settings.application_name} if settings.application_name else {}
    environ = ChainMap(named, os.environ)
    return Discovery(app_id, bare_token(token.get_secret_value()) if token else None, fetch, environ)


async def _fetch(exchange: Exchange, oauth: PlatformOAuth, scope: str, refused: str | None) -> str:
    """A token of our own: nobody is there to act for."""
    ours = OAuth(oauth.token_url, oauth.client_id, oauth.client_secret, scope=scope)
    return await exchange.token("the Agent 365 platform", ours, refused=refused)


def _spec(name: str, server: "FoundServer", oauth: PlatformOAuth | None) -> ServerSpec:
    credential = {"authorization": f"Bearer {server.bearer}"} if server.bearer else {}
    # What follows a question mark may be a secret, and is not kept; without it the server could not be found again.
    kept = "?" not in server.url and "#" not in server.url
    return ServerSpec(
        name,
        url=server.url,
        headers=credential,
        oauth=_oauth_of(oauth, server.scope) if oauth is not None and server.fetched else {},
        origin=Origin.PLATFORM,
        token_for={"server": server.name, "scope": server.scope} if kept else {},
    )


def _oauth_of(oauth: PlatformOAuth, scope: str) -> dict[str, str]:
    secret = oauth.client_secret
    said = {
        "token_url": oauth.token_url,
        "client_id": oauth.client_id,
        "client_secret": secret.get_secret_value() if secret else None,
        "grant": oauth.grant,
        # For itself an application is given a resource as a whole, and no single permission.
        "scope": scope if oauth.grant == "on_behalf_of" else f"{scope.rpartition('/')[0]}/.default",
    }
    return {name: value for name, value in said.items() if value is not None}


def _told(error: FrontdeskError) -> Unavailable:
    """What went wrong, without what the platform said in its own words."""
    if isinstance(error, DiscoveryFailed):
        told = f"it answers HTTP {error.status}; check FRONTDESK_PLATFORM_APP_ID and the token that it is asked with"
    else:
        told = one_line(str(error), LONGEST_REASON)
    return Unavailable(f"Agent 365 does not say which servers there are: {told}")
