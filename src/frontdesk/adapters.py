"""Connects capabilities that do not import each other, by passing functions of one to another."""

import os
import secrets
from collections import ChainMap
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from frontdesk.agent365.errors import DiscoveryFailed
from frontdesk.agents.host import AgentHost
from frontdesk.agents.memory_blocks import PER_PERSON_LABEL, block_row_user
from frontdesk.agents.turns.service import TurnService
from frontdesk.coding.memory_mirror import MemoryMirror
from frontdesk.db.engine import Database
from frontdesk.db.person_data import EXPORTED_COLUMNS, delete_person_rows, export_rows
from frontdesk.errors import FrontdeskError, MissingScope, Unavailable
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.identity.rights import SCHEDULES_WRITE, without_others_scopes
from frontdesk.identity.store import KeyStore
from frontdesk.journal.service import Journal
from frontdesk.mcp_client.model import OAuthConfig, bare_token
from frontdesk.memory.model import PersonScope
from frontdesk.memory.people import DeletedRecords, OtherPersonData
from frontdesk.schedules.requests import NewSchedule
from frontdesk.schedules.service import ScheduleService
from frontdesk.settings import PlatformOAuth, Settings
from frontdesk.text import one_line
from frontdesk.tools.server_registry import DiscoveredServers, PlatformSource
from frontdesk.tools.servers import ServerOrigin, ServerSpec, distinct_server_names
from frontdesk.tools.service import ToolService
from frontdesk.tools.token_exchange import TokenExchange

if TYPE_CHECKING:
    from frontdesk.agent365.discovery import Agent365Server, ServerDiscovery
    from frontdesk.agents.letta.host import LettaHost

# How many agents are searched for the name of a task's assignee.
MAX_AGENTS_LISTED = 1_000
MAX_REASON_LENGTH = 300


class TaskWakeups:
    """Has the scheduler prompt an agent when a person's task is due."""

    def __init__(self, schedules: ScheduleService) -> None:
        self._schedules = schedules

    async def schedule(self, scope: PersonScope, agent_id: str, prompt: str, at: datetime) -> int:
        """The id of a new schedule, which the agent creates for the person."""
        # The right to write tasks does not include the right to prompt agents. The run gets the rights of the task's
        # writer.
        if scope.scopes is not None and SCHEDULES_WRITE not in scope.scopes:
            raise MissingScope(SCHEDULES_WRITE)
        asked = NewSchedule(prompt, time=at.isoformat())
        own = replace(_caller_of_scope(scope, agent_id), scopes=without_others_scopes(scope.scopes))
        return (await self._schedules.add(own, asked)).schedule.id

    async def cancel(self, scope: PersonScope, schedule_id: int) -> None:
        await self._schedules.cancel(_caller_of_scope(scope, None), schedule_id)


def _caller_of_scope(scope: PersonScope, agent_id: str | None) -> Caller:
    """The person, or an agent that works for them. We identified them ourselves, so the caller is verified."""
    request_id = f"task-{secrets.token_hex(8)}"
    proof = scope.credential_id
    return Caller(request_id, agent_id, scope.user_id, AgentIdSource.CREDENTIAL, verified=True, credential_id=proof)


class AgentNames:
    """Looks up agents of the host by id and by name."""

    def __init__(self, host: AgentHost) -> None:
        self._host = host

    async def name_of(self, agent_id: str) -> str | None:
        """The agent's name. None if the host does not know it or does not answer."""
        try:
            found = await self._host.find(agent_id)
        except Unavailable:
            return None
        return None if found is None else found.name

    async def id_of(self, text: str) -> str | None:
        """The id of the agent with this id, or with this name if only one has it."""
        found = await self._host.find(text)
        if found is not None:
            return found.id
        named = [one.id for one in await self._host.list(MAX_AGENTS_LISTED) if one.name.casefold() == text.casefold()]
        return named[0] if len(named) == 1 else None


def person_data_outside_memory(
    database: Database, journal: Journal, keys: KeyStore, turns: TurnService, tools: ToolService, mirror: MemoryMirror
) -> Sequence[OtherPersonData]:
    """The data of a person outside the memory tables."""

    async def told(user_id: str) -> Sequence[Mapping[str, Any]]:
        return [asdict(entry) for entry in await journal.entries_of_person(user_id)]

    async def named(user_id: str) -> Sequence[Mapping[str, Any]]:
        theirs = [key for key in await keys.list() if key.user_id == user_id]
        return [{"id": key.id, "name": key.name, "created_at": key.created_at} for key in theirs]

    def of_agents(name: str) -> Callable[[str], Awaitable[Sequence[Mapping[str, Any]]]]:
        async def told_by_agents(user_id: str) -> Sequence[Mapping[str, Any]]:
            return await export_rows(database, name, user_id, block_row_user(user_id))

        return told_by_agents

    async def forget(user_id: str) -> DeletedRecords:
        # Running turns would write the deleted data again.
        await turns.cancel_person(user_id)
        await tools.usage.flush()
        await tools.learning.flush()
        await tools.learning.forget(f"user:{user_id}")
        gone = await delete_person_rows(database, user_id, block_row_user(user_id), PER_PERSON_LABEL)
        await mirror.delete_person(user_id, gone.agents)
        return DeletedRecords(gone.count, gone.left)

    return (
        OtherPersonData("journal", told, journal.delete_person),
        OtherPersonData("api_keys", named),
        *(OtherPersonData(name, of_agents(name)) for name in EXPORTED_COLUMNS),
        OtherPersonData("house", None, forget),
    )


def person_data_on_letta(host: "LettaHost") -> Sequence[OtherPersonData]:
    """A person's own agents on a Letta server. Erased first, because turns still show which shared agents they used."""

    async def forget(user_id: str) -> DeletedRecords:
        return DeletedRecords(*await host.forget_person(user_id))

    return (OtherPersonData("letta_agents", host.agents_of_person, forget),)


def platform_source(settings: Settings, exchange: TokenExchange) -> PlatformSource | None:
    """Agent 365 as a source of tool servers, each with its own token. None if it is not configured."""
    if settings.platform_app_id is None:
        return None
    discovery = _open_discovery(settings, settings.platform_app_id, exchange)

    async def discover() -> DiscoveredServers:
        try:
            found = await discovery.find()
        except FrontdeskError as error:
            raise _discovery_error(error) from None
        # Duplicates are removed.
        servers = list(dict.fromkeys(found.servers))
        names = distinct_server_names([(server.name, server.unique_name) for server in servers])
        specs = [
            _server_spec(name, server, settings.platform_oauth) for name, server in zip(names, servers, strict=True)
        ]
        return DiscoveredServers(specs, found.notes)

    def recall(spec: ServerSpec) -> ServerSpec | None:
        said = spec.token_for
        if not {"server", "scope"} <= said.keys():
            return None
        server = discovery.with_token(said["server"], said["server"], spec.url, said["scope"])
        return None if server is None else _server_spec(spec.name, server, settings.platform_oauth)

    return PlatformSource(discover, recall)


async def platform_problems(settings: Settings) -> Sequence[str]:
    """Ask Agent 365 for its servers, and return the problems."""
    exchange = TokenExchange()
    try:
        platform = platform_source(settings, exchange)
        return [] if platform is None else (await platform.discover()).notes
    except Unavailable as error:
        return [str(error)]
    finally:
        await exchange.close()


def _open_discovery(settings: Settings, app_id: str, exchange: TokenExchange) -> "ServerDiscovery":
    # Most installations do not use the platform, so its client is imported only here.
    from frontdesk.agent365.discovery import ServerDiscovery  # noqa: PLC0415

    oauth, token = settings.platform_oauth, settings.platform_token
    fetch = None if oauth is None else partial(_fetch_platform_token, exchange, oauth)
    named = {"AGENT365_APPLICATION_NAME": settings.application_name} if settings.application_name else {}
    environ = ChainMap(named, os.environ)
    return ServerDiscovery(app_id, bare_token(token.get_secret_value()) if token else None, fetch, environ)


async def _fetch_platform_token(exchange: TokenExchange, oauth: PlatformOAuth, scope: str, refused: str | None) -> str:
    """A token for the application itself, not for a person."""
    ours = OAuthConfig(oauth.token_url, oauth.client_id, oauth.client_secret, scope=scope)
    return await exchange.token("the Agent 365 platform", ours, refused=refused)


def _server_spec(name: str, server: "Agent365Server", oauth: PlatformOAuth | None) -> ServerSpec:
    credential = {"authorization": f"Bearer {server.bearer}"} if server.bearer else {}
    # Queries may contain secrets and are not stored, so a server with a query could not be found again.
    kept = "?" not in server.url and "#" not in server.url
    return ServerSpec(
        name,
        url=server.url,
        headers=credential,
        oauth=_server_oauth(oauth, server.scope) if oauth is not None and server.fetched else {},
        origin=ServerOrigin.PLATFORM,
        token_for={"server": server.name, "scope": server.scope} if kept else {},
    )


def _server_oauth(oauth: PlatformOAuth, scope: str) -> dict[str, str]:
    secret = oauth.client_secret
    said = {
        "token_url": oauth.token_url,
        "client_id": oauth.client_id,
        "client_secret": secret.get_secret_value() if secret else None,
        "grant": oauth.grant,
        # Without a person, an application gets a token for the whole resource, not for single permissions.
        "scope": scope if oauth.grant == "on_behalf_of" else f"{scope.rpartition('/')[0]}/.default",
    }
    return {name: value for name, value in said.items() if value is not None}


def _discovery_error(error: FrontdeskError) -> Unavailable:
    """The error without the platform's own text."""
    if isinstance(error, DiscoveryFailed):
        told = f"it answers HTTP {error.status}; check FRONTDESK_PLATFORM_APP_ID and the token that it is asked with"
    else:
        told = one_line(str(error), MAX_REASON_LENGTH)
    return Unavailable(f"Agent 365 does not list its servers: {told}")
