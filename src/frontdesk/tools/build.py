"""Builds the tools capability in two steps: the part that calls tools, then, with the agent host, the rest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from anyio.abc import TaskGroup

from frontdesk.agents.host import AgentHost, HeldTool
from frontdesk.db.engine import Database
from frontdesk.embedding import Embedder
from frontdesk.identity import outbound
from frontdesk.journal.service import Journal
from frontdesk.mcp_client.pool import KnownServers, McpClientPool
from frontdesk.settings import Settings
from frontdesk.tools.access_store import ToolAccess
from frontdesk.tools.administration import ToolAdministration
from frontdesk.tools.agent_tools import AgentToolSelector
from frontdesk.tools.agent_tools_store import AgentToolsLock, AgentToolsLockStore, ToolAttachmentStore
from frontdesk.tools.calls import ToolDispatcher, ToolGateway
from frontdesk.tools.catalogue import Catalogue
from frontdesk.tools.crawler import CrawlPolicy
from frontdesk.tools.finder import ExcludedHostTools, ToolFinder
from frontdesk.tools.learning import ToolLearning, UsageRecorder
from frontdesk.tools.selection import ToolLimits
from frontdesk.tools.server_registry import PlatformSource, ServerSources
from frontdesk.tools.servers import spec_from_settings
from frontdesk.tools.service import ToolService
from frontdesk.tools.token_exchange import TokenExchange

# Opens the source of servers besides settings and manifest; None if there is no such source.
OpenPlatformSource = Callable[[TokenExchange], PlatformSource | None]


@dataclass(slots=True)
class HostTools:
    """The tools of the agent host itself, once it is open."""

    host: AgentHost | None = None

    async def listed(self) -> Sequence[HeldTool]:
        return () if self.host is None else await self.host.host_tools()


@dataclass(frozen=True, slots=True)
class ToolRuntime:
    """The part that calls tools. It needs no agent host, and the built-in host needs it."""

    servers: KnownServers
    clients: McpClientPool
    exchange: TokenExchange
    embedder: Embedder | None
    catalogue: Catalogue
    learning: ToolLearning
    allowed: ToolAccess
    holdings: ToolAttachmentStore
    usage: UsageRecorder
    dispatcher: ToolDispatcher
    administration: ToolAdministration
    offered: HostTools

    async def close(self) -> None:
        await self.usage.close()
        await self.clients.close()
        await self.exchange.close()


def open_tool_runtime(
    settings: Settings,
    database: Database,
    journal: Journal,
    embedder: Embedder | None,
    platform: OpenPlatformSource,
) -> ToolRuntime:
    """Open the part that needs no agent host."""
    servers, exchange, offered = KnownServers(), TokenExchange(), HostTools()
    # The built-in host offers only the tools that every agent has anyway.
    host_tools = offered.listed if settings.letta_base_url else None
    # Computed once, not for every request.
    application = settings.application_name or outbound.project_name(Path.cwd())
    clients = McpClientPool(authorize=exchange.bearer, application=application)
    named, manners = _server_sources(settings, platform(exchange)), _crawl_policy(settings)
    catalogue = Catalogue(database, servers, clients, embedder, named=named, offered=host_tools, manners=manners)
    learning = ToolLearning(database, embedder.name if embedder else None, enabled=settings.learn_from_use)
    allowed, holdings = ToolAccess(database), ToolAttachmentStore(database)
    usage = UsageRecorder(learning, holdings)
    gateway = ToolGateway(servers, clients, application)
    calling = ToolDispatcher(catalogue, gateway, allowed, usage, journal)
    administration = ToolAdministration(catalogue, allowed, learning, journal)
    return ToolRuntime(
        servers,
        clients,
        exchange,
        embedder,
        catalogue,
        learning,
        allowed,
        holdings,
        usage,
        calling,
        administration,
        offered,
    )


def open_tools(
    settings: Settings, database: Database, host: AgentHost, reach: ToolRuntime, journal: Journal, tasks: TaskGroup
) -> ToolService:
    """Open the whole capability, once the agent host exists."""
    excluded = ExcludedHostTools(settings.exclude_letta_core_tools, settings.exclude_official_tools)
    finder = ToolFinder(reach.catalogue, reach.embedder, reach.learning, excluded)
    lock = AgentToolsLock(AgentToolsLockStore(database))
    selecting = AgentToolSelector(host, reach.holdings, lock, _tool_limits(settings))
    tools = ToolService(
        host=host,
        journal=journal,
        catalogue=reach.catalogue,
        finder=finder,
        selector=selecting,
        dispatcher=reach.dispatcher,
        allowed=reach.allowed,
        learning=reach.learning,
        usage=reach.usage,
        administration=reach.administration,
        tasks=tasks,
    )
    reach.offered.host = host
    return tools


def _server_sources(settings: Settings, platform: PlatformSource | None) -> ServerSources:
    manifest = Path(settings.tools_manifest).expanduser() if settings.tools_manifest else None
    servers = [spec_from_settings(server) for server in settings.mcp_servers]
    return ServerSources(servers, manifest, platform, timedelta(minutes=settings.crawl_minutes))


def _crawl_policy(settings: Settings) -> CrawlPolicy:
    return CrawlPolicy(timedelta(minutes=settings.crawl_minutes), hold_changes=settings.hold_changed_tools)


def _tool_limits(settings: Settings) -> ToolLimits:
    return ToolLimits(
        settings.max_total_tools,
        settings.max_mcp_tools,
        settings.min_mcp_tools,
        settings.default_drop_rate,
        frozenset(settings.never_detach_tools),
        settings.manage_only_mcp_tools,
        settings.exclude_letta_core_tools,
        settings.exclude_official_tools,
    )
