"""The composition root: settings in, one `App` of services out, and the tasks that run behind them."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial

import anyio
import structlog
from anyio.abc import TaskGroup
from pydantic import SecretStr

from frontdesk.agents.chat.mirror.store import MirrorStore
from frontdesk.agents.chat.replies import Replies
from frontdesk.agents.chat.service import Chat
from frontdesk.agents.chat.store import SessionStore
from frontdesk.agents.embedded.host import EmbeddedHost
from frontdesk.agents.embedded.toolbox import Toolbox
from frontdesk.agents.host import AgentHost, only_agent
from frontdesk.agents.letta.handed.model import PATH as HELD_PATH
from frontdesk.agents.letta.handed.model import lane_of
from frontdesk.agents.letta.handed.store import HandedStore
from frontdesk.agents.turns.service import Turns
from frontdesk.agents.turns.store import TurnStore
from frontdesk.background import Chore, group
from frontdesk.bridges import Names, Waking, elsewhere, of_letta, platform_of
from frontdesk.db.engine import Database, describe
from frontdesk.errors import ConfigurationError, Unavailable
from frontdesk.identity import outbound, rights
from frontdesk.identity.authority import Authority
from frontdesk.identity.inbound import Policy
from frontdesk.identity.model import Caller
from frontdesk.identity.oauth.clients import Terms
from frontdesk.identity.oauth.service import OAuth
from frontdesk.identity.oauth.store import OAuthStore
from frontdesk.identity.oauth.upstream import Upstreams
from frontdesk.identity.rates import RateLimiter
from frontdesk.identity.service import Agents, Identity
from frontdesk.identity.sessions.store import SealedStore
from frontdesk.identity.store import BucketStore, KeyStore
from frontdesk.identity.tokens import Tokens
from frontdesk.journal.metrics import Metrics
from frontdesk.journal.service import Journal
from frontdesk.journal.store import JournalStore
from frontdesk.loop.access import ModelAccess
from frontdesk.loop.tools import OwnTools, Tool
from frontdesk.memory.build import Neighbours, open_memory
from frontdesk.memory.own import OwnMemory
from frontdesk.memory.people.service import Elsewhere
from frontdesk.memory.recall.reading import Reader
from frontdesk.memory.service import MemoryRoom
from frontdesk.memory.tooling.status import House
from frontdesk.schedule.build import Working, open_schedules
from frontdesk.schedule.hosting import Upload
from frontdesk.schedule.own import OwnSchedules
from frontdesk.schedule.service import Schedules
from frontdesk.schedule.worker import Worker
from frontdesk.settings import Settings
from frontdesk.tools.build import Reach, open_reach, open_tools
from frontdesk.tools.service import Tools
from frontdesk.workspace.build import open_workspace
from frontdesk.workspace.service import WorkspaceRoom

CHECK_SECONDS = 2
# How the state of a database begins that can be read.
NOT_WRITABLE = "cannot be written to"
HOUSEKEEPING_SECONDS = 5
# What PromptYoSelf says where LETTA_BASE_URL is not set; its clients read it as an address.
LETTA_BY_DEFAULT = "http://localhost:8283"

log = structlog.get_logger("frontdesk.app")
HOUSEKEEPING = Chore(log, "housekeeping_waits", "housekeeping_failed")
WRITING_DOWN = Chore(log, "journal_not_written", "journal_not_written")


class Door(StrEnum):
    """The capabilities that have an address of their own below /mcp; the core is at all of them."""

    CORE = ""
    TOOLS = "tools"
    SCHEDULE = "schedule"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class App:
    """Every service of the house, made once."""

    settings: Settings
    database: Database
    keys: KeyStore
    identity: Identity
    journal: Journal
    host: AgentHost
    turns: Turns
    chat: Chat
    tools: Tools
    handed: HandedStore
    schedules: Schedules
    working: Working
    memory: MemoryRoom
    reader: Reader
    workspace: WorkspaceRoom
    upstreams: Upstreams

    @property
    def worker(self) -> Worker:
        return self.working.worker

    async def parts(self) -> dict[str, str]:
        """The state of each part: `ok`, or what is wrong with it."""
        return await parts_of(self.database)

    async def health(self, caller: Caller) -> dict[str, object]:
        """What the `health` tool answers."""
        rights.require(caller, rights.HEALTH_READ)
        parts = await self.parts()
        settings = self.settings
        return {
            "status": "healthy" if all(state == "ok" for state in parts.values()) else "unhealthy",
            "letta_base_url": settings.letta_base_url or LETTA_BY_DEFAULT,
            "db": settings.promptyoself_db or describe(self.database.url),
            "auth_set": settings.letta_token is not None,
        }

    async def check_exposure(self) -> None:
        """Refuse to be reachable from elsewhere with nobody able to prove who they are."""
        if not self.settings.exposed or self.settings.trusted_issuers:
            return
        if not await self.keys.any_working(datetime.now(UTC)):
            raise ConfigurationError(
                f"{self.settings.exposed_by} reaches beyond this machine and nobody could prove who they are. "
                "Make a key (frontdesk keys create --user YOU --scope house:admin), configure FRONTDESK_ISSUERS, "
                "or stay on 127.0.0.1"
            )

    async def check_model(self) -> None:
        """Refuse a default model that could not be asked."""
        if isinstance(self.host, EmbeddedHost):
            await (await self.host.stage()).models.open(None)


async def parts_of(database: Database) -> dict[str, str]:
    """The state of each part: `ok`, or what is wrong with it."""
    try:
        with anyio.fail_after(CHECK_SECONDS):
            await database.ping()
    except (Unavailable, TimeoutError) as error:
        return {"database": str(error) or f"no answer in {CHECK_SECONDS} s"}
    trouble = await database.write_trouble()
    return {"database": "ok" if trouble is None else f"{NOT_WRITABLE}: {trouble}"}


@asynccontextmanager
async def open_app(settings: Settings) -> AsyncGenerator[App]:
    """The services, without the background tasks: what a command needs."""
    async with AsyncExitStack() as stack:
        database = await Database.open(settings)
        stack.push_async_callback(database.close)
        said = outbound.headers()
        tasks = await stack.enter_async_context(group())
        metrics = Metrics()
        journal = Journal(JournalStore(database), metrics, timedelta(days=settings.journal_days))
        stack.push_async_callback(_write_down, journal)
        keys = KeyStore(database)
        reach = await stack.enter_async_context(open_reach(settings, database, journal, partial(platform_of, settings)))
        turns = Turns(TurnStore(database), tasks)
        own, remembering = OwnSchedules(), OwnMemory()
        host, upload, kept = _host(settings, database, turns, reach, keys, (own.of, remembering.of))
        stack.push_async_callback(host.close)
        tools = open_tools(settings, database, host, reach, journal, tasks)
        tasks.start_soon(turns.run)
        stack.push_async_callback(turns.close)
        tokens = Tokens(settings.trusted_issuers, resources(settings), said)
        stack.push_async_callback(tokens.close)
        upstreams = Upstreams(settings.trusted_issuers, base_url(settings), said)
        stack.push_async_callback(upstreams.close)
        identity = _identity(settings, database, keys, tokens, host, turns)
        mirror = MirrorStore(database) if database.shared else None
        chat = Chat(SessionStore(database), host, Replies(host, journal, tasks, turns.close, mirror))
        stack.push_async_callback(chat.close)
        workspace = open_workspace(settings, database, host)
        talks = workspace.sessions.keeps
        schedules, working = open_schedules(settings, database, host, upload, metrics.registry, tasks, talks)
        stack.push_async_callback(schedules.executing.close)
        own.open(schedules)
        waking, names = Waking(schedules), Names(host)
        others = Neighbours(
            waking.schedule,
            waking.cancel,
            names.id_of,
            names.name_of,
            (*kept, *elsewhere(database, journal, keys, turns, tools, workspace.mirror)),
        )
        memory, reader = open_memory(database, reach.embedder, others)
        remembering.open(memory, House(partial(parts_of, database), journal))
        handed = HandedStore(database)
        rooms = (host, turns, chat, tools, handed, schedules, working, memory, reader, workspace, upstreams)
        yield App(settings, database, keys, identity, journal, *rooms)


def _identity(
    settings: Settings, database: Database, keys: KeyStore, tokens: Tokens, host: AgentHost, turns: Turns
) -> Identity:
    async def knows(agent_id: str) -> bool:
        return await host.find(agent_id) is not None

    async def bounds(agent_id: str) -> Authority:
        # Letta's agents call back, whichever process runs the turn; of our own, those that this process runs.
        return await turns.authority_in(lane_of(agent_id) if settings.letta_base_url else None, agent_id)

    return Identity(
        Policy.of(settings),
        keys,
        tokens,
        RateLimiter(settings.rate_agent, settings.rate_user, BucketStore(database) if database.shared else None),
        Agents(knows, lambda: only_agent(host), bounds),
        oauth=OAuth(OAuthStore(database), Terms.of(settings, base_url(settings), resources(settings))),
        sealed=SealedStore(database),
        log_sources=settings.debug_agent_id_source,
    )


@asynccontextmanager
async def running(app: App) -> AsyncGenerator[None]:
    """The background tasks of a server, stopped and drained on the way out."""
    async with _background_of(app) as tasks:
        tasks.start_soon(app.chat.run)
        try:
            async with _working(app) if app.settings.works else nullcontext():
                yield
        finally:
            # While the journal still writes, so that it says how they ended.
            await app.chat.close()


@asynccontextmanager
async def running_worker(app: App) -> AsyncGenerator[None]:
    """The background tasks of a process that delivers due prompts and serves nobody."""
    async with _background_of(app), _working(app):
        yield


@asynccontextmanager
async def _background_of(app: App) -> AsyncGenerator[TaskGroup]:
    """What runs behind agents at work, whatever wakes them."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(app.journal.run)
        tasks.start_soon(HOUSEKEEPING.every, HOUSEKEEPING_SECONDS, app.identity.tidy)
        tasks.start_soon(app.tools.catalogue.run)
        tasks.start_soon(app.tools.usage.run)
        tasks.start_soon(app.tools.learning.run)
        tasks.start_soon(app.reader.run)
        if isinstance(app.host, EmbeddedHost):
            tasks.start_soon(app.host.warm_up)
        try:
            yield tasks
        finally:
            tasks.cancel_scope.cancel()
    with anyio.move_on_after(HOUSEKEEPING_SECONDS):
        await HOUSEKEEPING.attempt(app.identity.tidy)


@asynccontextmanager
async def _working(app: App) -> AsyncGenerator[None]:
    """Deliver what is due; on the way out take on nothing new, and let what is under way end."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(app.working.run)
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()


def resources(settings: Settings) -> frozenset[str]:
    """The audiences a token may be made for: the server and each of its MCP doors."""
    base = base_url(settings)
    return frozenset({base, base + HELD_PATH, *(f"{base}/mcp/{door}".rstrip("/") for door in Door)})


def base_url(settings: Settings) -> str:
    """Where clients reach us, as far as we know."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return settings.public_url or f"http://{host}:{settings.port}"


def _host(
    settings: Settings,
    database: Database,
    turns: Turns,
    reach: Reach,
    keys: KeyStore,
    own: Sequence[OwnTools],
) -> tuple[AgentHost, Upload | None, Sequence[Elsewhere]]:
    """The agents' host, how it takes tools that somebody wrote, if it does, and what it keeps of people elsewhere."""
    if settings.letta_base_url is None:
        # Its agents reach tools through the same door as everybody else's.
        calling = reach.calling
        toolbox = Toolbox(calling.attached, reach.servers, reach.clients, calling.attached_reads_only)

        def own_tools(caller: Caller, token: SecretStr | None) -> list[Tool]:
            return [tool for tools in (reach.own.of, *own) for tool in tools(caller, token)]

        return EmbeddedHost(database, turns, ModelAccess.of(settings), toolbox, own_tools), None, ()
    # Letta's client is slow to import, and only these setups need it.
    from frontdesk.agents.letta.handed.registrar import Registrar  # noqa: PLC0415
    from frontdesk.agents.letta.host import LettaHost  # noqa: PLC0415
    from frontdesk.agents.letta.people.service import LettaPeople  # noqa: PLC0415
    from frontdesk.agents.letta.people.store import ServingStore  # noqa: PLC0415
    from frontdesk.agents.letta.upload import upload  # noqa: PLC0415

    token = settings.letta_token
    secret = token.get_secret_value() if token else None
    registrar = Registrar(HandedStore(database), keys, base_url(settings))
    people = LettaPeople(ServingStore(database), keys)
    host = LettaHost(
        settings.letta_base_url, secret, turns, settings.model, registrar, people, image_models=settings.image_models
    )
    return host, partial(upload, host.server), of_letta(host)


async def _write_down(journal: Journal) -> None:
    """What a command did is in the journal too, though nothing ran behind it."""
    with anyio.move_on_after(HOUSEKEEPING_SECONDS, shield=True):
        await WRITING_DOWN.attempt(journal.flush)
