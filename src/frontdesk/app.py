"""Opens every service from the settings, and runs the background tasks of a server or a worker."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import anyio
import structlog
from anyio.abc import TaskGroup
from pydantic import BaseModel, ConfigDict

from frontdesk.adapters import (
    AgentNames,
    TaskWakeups,
    person_data_on_letta,
    person_data_outside_memory,
    platform_source,
)
from frontdesk.agents.chat.replies import ReplyService
from frontdesk.agents.chat.service import ChatService
from frontdesk.agents.chat.store import ChatSessionStore, ReplyStore
from frontdesk.agents.embedded.host import EmbeddedHost
from frontdesk.agents.embedded.operation_tools import OperationTools
from frontdesk.agents.embedded.tools import ToolBinder
from frontdesk.agents.host import AgentHost, only_agent
from frontdesk.agents.letta.handed_store import HANDED_TOOLS_PATH as HELD_PATH
from frontdesk.agents.letta.handed_store import HandedToolStore, agent_lock
from frontdesk.agents.turns.service import TurnService
from frontdesk.agents.turns.store import TurnStore
from frontdesk.background import BackgroundJob, background_group
from frontdesk.coding.service import CodingService, open_coding
from frontdesk.db.engine import Database, describe_url
from frontdesk.errors import ConfigurationError, NotFound, Unavailable
from frontdesk.identity import outbound, rights
from frontdesk.identity.authority import Authority
from frontdesk.identity.inbound import IdentityPolicy
from frontdesk.identity.oauth_server import AuthorizationServer, OAuthServerConfig
from frontdesk.identity.rates import RateLimiter
from frontdesk.identity.service import AgentLookup, Identity
from frontdesk.identity.sign_in import SignInIssuers
from frontdesk.identity.store import BucketStore, KeyStore, McpSessionStore, OAuthStore
from frontdesk.identity.tokens import TokenVerifier
from frontdesk.journal.metrics import Metrics
from frontdesk.journal.service import Journal
from frontdesk.journal.store import JournalStore
from frontdesk.llm.access import ModelAccess
from frontdesk.memory.people import OtherPersonData
from frontdesk.memory.search.indexer import MemoryIndexer
from frontdesk.memory.service import MemoryDependencies, RecordServices, StatusSources, open_memory
from frontdesk.operations import BoundOperation, Call, McpPath, McpTool, NoArguments, Operation
from frontdesk.schedules.agents import UploadTool
from frontdesk.schedules.service import ScheduleService, open_schedules
from frontdesk.schedules.worker import Worker
from frontdesk.settings import Settings
from frontdesk.tools.build import ToolRuntime, open_tool_runtime, open_tools
from frontdesk.tools.service import ToolService

CHECK_SECONDS = 2
# The prefix of the state of a database that is read-only.
DATABASE_NOT_WRITABLE = "cannot be written to"
HOUSEKEEPING_SECONDS = 5
# PromptYoSelf's default for LETTA_BASE_URL; its clients read it as an address.
DEFAULT_LETTA_URL = "http://localhost:8283"
# What the extra frontdesk[letta] installs.
LETTA_PACKAGES = frozenset({"letta_client", "httpx"})

log = structlog.get_logger("frontdesk.app")
HOUSEKEEPING_JOB = BackgroundJob(log, "housekeeping_waits", "housekeeping_failed")
JOURNAL_FLUSH_JOB = BackgroundJob(log, "journal_not_written", "journal_not_written")


@dataclass(frozen=True, slots=True)
class App:
    """Every service of the installation, created once."""

    settings: Settings
    database: Database
    keys: KeyStore
    identity: Identity
    journal: Journal
    host: AgentHost
    turns: TurnService
    chat: ChatService
    tools: ToolService
    handed: HandedToolStore
    schedules: ScheduleService
    worker: Worker
    memory: RecordServices
    memory_indexer: MemoryIndexer
    workspace: CodingService
    sign_in_issuers: SignInIssuers

    async def check_parts(self) -> dict[str, str]:
        """The state of each part: `ok`, or what is wrong with it."""
        return await check_parts(self.database)

    def bind(self, operation: Operation, service: object) -> BoundOperation:
        return BoundOperation(operation, service, self.identity.require_agent)

    def operations(self) -> Sequence[BoundOperation]:
        """Every operation with the service that runs it."""
        # The declarations take a while to load, and most commands need none.
        from frontdesk.operation_table import OPERATIONS  # noqa: PLC0415

        own = [self.bind(operation, self) for operation in CORE_OPERATIONS]
        return [*own, *(self.bind(one, getattr(self, name)) for name, every in OPERATIONS.items() for one in every)]

    async def check_exposure(self) -> None:
        """Raise an error if other machines could reach the server, but nobody could authenticate."""
        if not self.settings.exposed or self.settings.trusted_issuers:
            return
        if not await self.keys.any_working(datetime.now(UTC)):
            raise ConfigurationError(
                f"{self.settings.exposed_by} makes Frontdesk reachable from other machines, but nobody could "
                "authenticate. Create a key (frontdesk keys create --user YOU --scope house:admin), configure "
                "FRONTDESK_ISSUERS, or listen on 127.0.0.1"
            )

    async def check_model(self) -> None:
        """Raise an error if the default model cannot be opened."""
        if isinstance(self.host, EmbeddedHost):
            await (await self.host.resources()).models.open(None)


async def check_parts(database: Database) -> dict[str, str]:
    """The state of each part: `ok`, or what is wrong with it."""
    try:
        with anyio.fail_after(CHECK_SECONDS):
            await database.ping()
    except (Unavailable, TimeoutError) as error:
        return {"database": str(error) or f"no answer in {CHECK_SECONDS} s"}
    trouble = await database.write_problem()
    return {"database": "ok" if trouble is None else f"{DATABASE_NOT_WRITABLE}: {trouble}"}


@asynccontextmanager
async def open_app(settings: Settings) -> AsyncGenerator[App]:
    """Open the services without the background tasks, as commands need them."""
    async with AsyncExitStack() as stack:
        database = await Database.open(settings)
        stack.push_async_callback(database.close)
        said = outbound.caller_headers()
        tasks = await stack.enter_async_context(background_group())
        metrics = Metrics()
        journal = Journal(JournalStore(database), metrics, timedelta(days=settings.journal_days))
        stack.push_async_callback(_flush_journal, journal)
        keys = KeyStore(database)
        reach = await stack.enter_async_context(
            open_tool_runtime(settings, database, journal, partial(platform_source, settings))
        )
        turns = TurnService(TurnStore(database), tasks)
        own = OperationTools()
        host, upload, kept = _open_host(settings, database, turns, reach, keys, own)
        stack.push_async_callback(host.close)
        tools = open_tools(settings, database, host, reach, journal, tasks)
        tasks.start_soon(turns.run)
        stack.push_async_callback(turns.close)
        tokens = TokenVerifier(settings.trusted_issuers, token_audiences(settings), said)
        stack.push_async_callback(tokens.close)
        upstreams = SignInIssuers(settings.trusted_issuers, base_url(settings), said)
        stack.push_async_callback(upstreams.close)
        identity = _open_identity(settings, database, keys, tokens, host, turns)
        mirror = ReplyStore(database) if database.shared else None
        chat = ChatService(ChatSessionStore(database), host, ReplyService(host, journal, tasks, turns.close, mirror))
        stack.push_async_callback(chat.close)
        workspace = open_coding(settings, database, host)
        talks = workspace.sessions.has_conversation
        schedules, worker = open_schedules(settings, database, host, upload, metrics.registry, tasks, talks)
        stack.push_async_callback(schedules.executor.close)
        waking, names = TaskWakeups(schedules), AgentNames(host)
        others = MemoryDependencies(
            waking.schedule,
            waking.cancel,
            names.id_of,
            names.name_of,
            (*kept, *person_data_outside_memory(database, journal, keys, turns, tools, workspace.mirror)),
            StatusSources(partial(check_parts, database), journal),
        )
        memory, reader = open_memory(database, reach.embedder, others)
        handed = HandedToolStore(database)
        services = (host, turns, chat, tools, handed, schedules, worker, memory, reader, workspace, upstreams)
        app = App(settings, database, keys, identity, journal, *services)
        own.open(app.operations)
        yield app


def _open_identity(
    settings: Settings, database: Database, keys: KeyStore, tokens: TokenVerifier, host: AgentHost, turns: TurnService
) -> Identity:
    async def knows(agent_id: str) -> bool:
        return await host.find(agent_id) is not None

    async def bounds(agent_id: str) -> Authority:
        # Letta's agents may call any process during their turn; built-in agents call the process that runs their turn.
        return await turns.current_authority(agent_lock(agent_id) if settings.letta_base_url else None, agent_id)

    return Identity(
        IdentityPolicy.of(settings),
        keys,
        tokens,
        RateLimiter(settings.rate_agent, settings.rate_user, BucketStore(database) if database.shared else None),
        AgentLookup(knows, lambda: only_agent(host), bounds),
        oauth=AuthorizationServer(
            OAuthStore(database), OAuthServerConfig.of(settings, base_url(settings), token_audiences(settings))
        ),
        sealed=McpSessionStore(database),
        log_sources=settings.debug_agent_id_source,
    )


@asynccontextmanager
async def running(app: App) -> AsyncGenerator[None]:
    """Run the background tasks of a server. On exit they are stopped and drained."""
    async with _background_tasks(app) as tasks:
        tasks.start_soon(app.chat.run)
        try:
            async with _delivering(app) if app.settings.delivers_prompts else nullcontext():
                yield
        finally:
            # The journal still writes at this point, so it records how the replies ended.
            await app.chat.close()


@asynccontextmanager
async def running_worker(app: App) -> AsyncGenerator[None]:
    """Run the background tasks of a process that only delivers due prompts."""
    async with _background_tasks(app), _delivering(app):
        yield


@asynccontextmanager
async def _background_tasks(app: App) -> AsyncGenerator[TaskGroup]:
    """Run the background tasks that servers and workers need."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(app.journal.run)
        tasks.start_soon(HOUSEKEEPING_JOB.run_every, HOUSEKEEPING_SECONDS, app.identity.run_housekeeping)
        tasks.start_soon(app.tools.catalogue.run)
        tasks.start_soon(app.tools.usage.run)
        tasks.start_soon(app.tools.learning.run)
        tasks.start_soon(app.memory_indexer.run)
        if isinstance(app.host, EmbeddedHost):
            tasks.start_soon(app.host.warm_up)
        try:
            yield tasks
        finally:
            tasks.cancel_scope.cancel()
    with anyio.move_on_after(HOUSEKEEPING_SECONDS):
        await HOUSEKEEPING_JOB.attempt(app.identity.run_housekeeping)


@asynccontextmanager
async def _delivering(app: App) -> AsyncGenerator[None]:
    """Deliver due prompts. On exit, start no new delivery and wait for running ones."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(app.worker.run)
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()


def token_audiences(settings: Settings) -> frozenset[str]:
    """The accepted audiences of tokens: the server and each of its MCP addresses."""
    base = base_url(settings)
    return frozenset({base, base + HELD_PATH, *(f"{base}/mcp/{mcp_path}".rstrip("/") for mcp_path in McpPath)})


def base_url(settings: Settings) -> str:
    """The public URL, or else the address that the server listens on."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return settings.public_url or f"http://{host}:{settings.port}"


def _open_host(
    settings: Settings,
    database: Database,
    turns: TurnService,
    reach: ToolRuntime,
    keys: KeyStore,
    own: OperationTools,
) -> tuple[AgentHost, UploadTool | None, Sequence[OtherPersonData]]:
    """The agent host, its upload function if it has one, and the data of people that it keeps elsewhere."""
    if settings.letta_base_url is None:
        # Built-in agents call tools through the same dispatcher as all callers.
        calling = reach.dispatcher
        toolbox = ToolBinder(calling.call_attached, reach.servers, reach.clients, calling.attached_reads_only)
        return EmbeddedHost(database, turns, ModelAccess.from_settings(settings), toolbox, own.for_caller), None, ()
    # Letta's client is slow to import, and only these setups need it; it comes with an extra.
    try:
        from frontdesk.agents.letta.host import LettaHost  # noqa: PLC0415
        from frontdesk.agents.letta.people import AgentAssignments  # noqa: PLC0415
        from frontdesk.agents.letta.people_store import AgentAssignmentStore  # noqa: PLC0415
        from frontdesk.agents.letta.tools import (  # noqa: PLC0415
            ToolRegistrar,
            upload_tool,
        )
    except ModuleNotFoundError as missing:
        if missing.name not in LETTA_PACKAGES:
            raise
        raise ConfigurationError(
            f"LETTA_BASE_URL is set, and agents on a Letta server need the Python package {missing.name}, which is not "
            "installed: run pip install 'frontdesk[letta]', or unset LETTA_BASE_URL for agents on the built-in host"
        ) from missing

    token = settings.letta_secret
    secret = token.get_secret_value() if token else None
    registrar = ToolRegistrar(HandedToolStore(database), keys, base_url(settings))
    people = AgentAssignments(AgentAssignmentStore(database), keys)
    host = LettaHost(
        settings.letta_base_url, secret, turns, settings.model, registrar, people, image_models=settings.image_models
    )
    return host, partial(upload_tool, host.server), person_data_on_letta(host)


async def _flush_journal(journal: Journal) -> None:
    """Write the journal of a command, which has no background tasks."""
    with anyio.move_on_after(HOUSEKEEPING_SECONDS, shield=True):
        await JOURNAL_FLUSH_JOB.attempt(journal.flush)


async def delete_agent(app: App, agent_id: str) -> Sequence[str]:
    """Revoke the keys of an agent, then delete it. Returns the ids of those keys.

    In this order a failed deletion can be repeated, and no key outlives its agent.
    """
    working = [key.id for key in await app.keys.list_for_agent(agent_id, datetime.now(UTC))]
    for key_id in working:
        with suppress(NotFound):
            await app.identity.revoke_key(key_id)
    await app.tools.delete_agent(agent_id)
    return working


class HealthOutput(BaseModel):
    """The state of this installation and its settings."""

    model_config = ConfigDict(frozen=True)

    status: str
    letta_base_url: str
    db: str
    auth_set: bool


class WhoamiOutput(BaseModel):
    """The caller as Frontdesk sees it."""

    model_config = ConfigDict(frozen=True)

    agent_id: str | None
    user_id: str | None
    source: str
    verified: bool
    scopes: list[str] | None
    name: str | None
    capabilities: list[str]
    request_id: str


async def report_health(app: App, _call: Call, _request: NoArguments) -> HealthOutput:
    parts = await app.check_parts()
    settings = app.settings
    return HealthOutput(
        status="healthy" if all(state == "ok" for state in parts.values()) else "unhealthy",
        letta_base_url=settings.letta_base_url or DEFAULT_LETTA_URL,
        db=settings.promptyoself_db or describe_url(app.database.url),
        auth_set=settings.letta_secret is not None,
    )


async def report_caller(app: App, call: Call, _request: NoArguments) -> WhoamiOutput:
    known = app.identity.whoami(call.caller)
    return WhoamiOutput(
        agent_id=known.agent_id,
        user_id=known.user_id,
        source=known.source,
        verified=known.verified,
        scopes=None if known.scopes is None else sorted(known.scopes),
        name=known.name,
        capabilities=list(known.capabilities),
        request_id=known.request_id,
    )


# The operations that the app itself runs; every MCP path has them.
CORE_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="health",
        summary="Whether Frontdesk can serve, and which agent server and database it is set to",
        request=NoArguments,
        run=report_health,
        scopes=(rights.HEALTH_READ,),
        mcp=McpTool(
            title="Health",
            description="Whether Frontdesk can serve, and which agent server and database it is set to.",
            response=HealthOutput,
            for_agent=False,
            accepts_any_agent_id=True,
        ),
    ),
    Operation(
        name="whoami",
        summary="Who Frontdesk takes the caller for",
        request=NoArguments,
        run=report_caller,
        scopes=(rights.IDENTITY_READ,),
        mcp=McpTool(
            title="Who am I",
            description=(
                "Who Frontdesk takes you for: agent, person, where the agent id came from, and whether it is proven."
            ),
            response=WhoamiOutput,
        ),
    ),
)
