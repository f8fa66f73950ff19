"""Puts the tools room together: first what reaches tools, then, with the agent host, what hands them out."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from anyio.abc import TaskGroup

from frontdesk.agents.host import AgentHost
from frontdesk.db.engine import Database
from frontdesk.embedding.choose import embedder_for
from frontdesk.embedding.port import Embedder
from frontdesk.identity import outbound
from frontdesk.journal.service import Journal
from frontdesk.loop.mcp.pool import McpClients
from frontdesk.loop.mcp.servers import Servers
from frontdesk.settings import Settings
from frontdesk.tools.calling import Calling
from frontdesk.tools.catalogue.asking import Manners
from frontdesk.tools.catalogue.roster.platform import Platform
from frontdesk.tools.catalogue.roster.service import Named
from frontdesk.tools.catalogue.servers import of_settings
from frontdesk.tools.catalogue.service import Catalogue
from frontdesk.tools.finding import Excluded, Finder
from frontdesk.tools.gateway.exchange import Exchange
from frontdesk.tools.gateway.service import Gateway
from frontdesk.tools.house import House
from frontdesk.tools.learning.service import Learning
from frontdesk.tools.own import OwnTools
from frontdesk.tools.rights.service import Rights
from frontdesk.tools.selecting import Selecting
from frontdesk.tools.selection.model import Limits
from frontdesk.tools.selection.store import HoldingStore
from frontdesk.tools.selection.turnstile.service import Turnstile
from frontdesk.tools.selection.turnstile.store import TurnstileStore
from frontdesk.tools.service import Tools
from frontdesk.tools.usage import Usage

# What names servers besides settings and manifest, given what tokens are fetched with; None where nothing does.
FromPlatform = Callable[[Exchange], Platform | None]


@dataclass(frozen=True, slots=True)
class Reach:
    """What calls tools; it needs no agent host, and the built-in host needs it."""

    servers: Servers
    clients: McpClients
    embedder: Embedder | None
    catalogue: Catalogue
    learning: Learning
    allowed: Rights
    holdings: HoldingStore
    usage: Usage
    calling: Calling
    house: House
    own: OwnTools


@asynccontextmanager
async def open_reach(
    settings: Settings, database: Database, journal: Journal, platform: FromPlatform
) -> AsyncGenerator[Reach]:
    """What can be had before there is an agent host."""
    servers, exchange, own = Servers(), Exchange(), OwnTools()
    # The built-in host has no tools but those that every agent has anyway.
    offered = own.offered if settings.letta_base_url else None
    # Looked up once, not with every request.
    application = settings.application_name or outbound.project_name(Path.cwd())
    clients = McpClients(authorize=exchange.bearer, application=application)
    embedder = embedder_for(settings.embeddings, settings.embeddings_model, settings.embeddings_key)
    named, manners = _named(settings, platform(exchange)), _manners(settings)
    catalogue = Catalogue(database, servers, clients, embedder, named=named, offered=offered, manners=manners)
    learning = Learning(database, embedder.name if embedder else None, enabled=settings.learn_from_use)
    allowed, holdings = Rights(database), HoldingStore(database)
    usage = Usage(learning, holdings)
    gateway = Gateway(servers, clients, application)
    calling = Calling(catalogue, gateway, allowed, usage, journal)
    house = House(catalogue, allowed, learning, journal)
    try:
        await catalogue.reach()
        yield Reach(servers, clients, embedder, catalogue, learning, allowed, holdings, usage, calling, house, own)
    finally:
        await usage.close()
        await clients.close()
        await exchange.close()
        if embedder is not None:
            await embedder.close()


def open_tools(
    settings: Settings, database: Database, host: AgentHost, reach: Reach, journal: Journal, tasks: TaskGroup
) -> Tools:
    """The whole room, once the agent host stands."""
    excluded = Excluded(settings.exclude_letta_core_tools, settings.exclude_official_tools)
    finder = Finder(reach.catalogue, reach.embedder, reach.learning, excluded)
    turnstile = Turnstile(TurnstileStore(database))
    selecting = Selecting(host, reach.holdings, turnstile, _limits(settings))
    tools = Tools(
        host=host,
        journal=journal,
        catalogue=reach.catalogue,
        finder=finder,
        selecting=selecting,
        calling=reach.calling,
        allowed=reach.allowed,
        learning=reach.learning,
        usage=reach.usage,
        house=reach.house,
        tasks=tasks,
    )
    reach.own.open(tools)
    return tools


def _named(settings: Settings, platform: Platform | None) -> Named:
    manifest = Path(settings.tools_manifest).expanduser() if settings.tools_manifest else None
    servers = [of_settings(server) for server in settings.mcp_servers]
    return Named(servers, manifest, platform, timedelta(minutes=settings.crawl_minutes))


def _manners(settings: Settings) -> Manners:
    return Manners(timedelta(minutes=settings.crawl_minutes), hold_changes=settings.hold_changed_tools)


def _limits(settings: Settings) -> Limits:
    return Limits(
        settings.max_total_tools,
        settings.max_mcp_tools,
        settings.min_mcp_tools,
        settings.default_drop_rate,
        frozenset(settings.never_detach_tools),
        settings.manage_only_mcp_tools,
        settings.exclude_letta_core_tools,
        settings.exclude_official_tools,
    )
