"""Opens every service from the settings, and runs the background tasks of a server or a worker."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING

import anyio
import structlog
from anyio.abc import TaskGroup
from pydantic import BaseModel, ConfigDict

from frontdesk.agents.embedded.operation_tools import OperationTools
from frontdesk.agents.host import only_agent
from frontdesk.agents.letta.handed_store import HANDED_TOOLS_PATH as HELD_PATH
from frontdesk.agents.letta.handed_store import agent_lock
from frontdesk.background import BackgroundJob, background_group
from frontdesk.db.engine import Database, describe_url
from frontdesk.errors import ConfigurationError, NotFound, Unavailable
from frontdesk.identity import rights
from frontdesk.operations import BoundOperation, Call, McpPath, McpTool, NoArguments, Operation
from frontdesk.settings import Settings

if TYPE_CHECKING:
    from frontdesk.agents.chat.service import ChatService
    from frontdesk.agents.embedded.tools import ToolBinder
    from frontdesk.agents.host import AgentHost
    from frontdesk.agents.letta.handed_store import HandedToolStore
    from frontdesk.agents.turns.service import TurnService
    from frontdesk.coding.service import CodingService
    from frontdesk.embedding import Embedder
    from frontdesk.identity.authority import Authority
    from frontdesk.identity.service import Identity
    from frontdesk.identity.sign_in import SignInIssuers
    from frontdesk.identity.store import KeyStore
    from frontdesk.identity.tokens import TokenVerifier
    from frontdesk.journal.metrics import Metrics
    from frontdesk.journal.service import Journal
    from frontdesk.memory.people import OtherPersonData
    from frontdesk.memory.search.indexer import MemoryIndexer
    from frontdesk.memory.service import RecordServices
    from frontdesk.schedules.agents import UploadTool
    from frontdesk.schedules.service import ScheduleService
    from frontdesk.schedules.worker import Worker
    from frontdesk.tools.build import ToolRuntime
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


class App:
    """Every service of the installation. Each is opened when it is first used: most commands need few of them.

    The imports stand in the properties for the same reason: together they take a second.
    """

    def __init__(self, settings: Settings, database: Database, tasks: TaskGroup) -> None:
        self.settings = settings
        self.database = database
        self._tasks = tasks
        self._agent_tools = OperationTools()
        self._agent_tools.open(self.operations)

    @cached_property
    def metrics(self) -> "Metrics":
        from frontdesk.journal.metrics import Metrics

        return Metrics()

    @cached_property
    def journal(self) -> "Journal":
        from frontdesk.journal.service import Journal
        from frontdesk.journal.store import JournalStore

        return Journal(JournalStore(self.database), lambda: self.metrics, timedelta(days=self.settings.journal_days))

    @cached_property
    def keys(self) -> "KeyStore":
        from frontdesk.identity.store import KeyStore

        return KeyStore(self.database)

    @cached_property
    def tokens(self) -> "TokenVerifier":
        from frontdesk.identity.outbound import caller_headers
        from frontdesk.identity.tokens import TokenVerifier

        return TokenVerifier(self.settings.trusted_issuers, token_audiences(self.settings), caller_headers())

    @cached_property
    def sign_in_issuers(self) -> "SignInIssuers":
        from frontdesk.identity.outbound import caller_headers
        from frontdesk.identity.sign_in import SignInIssuers

        return SignInIssuers(self.settings.trusted_issuers, base_url(self.settings), caller_headers())

    @cached_property
    def identity(self) -> "Identity":
        from frontdesk.identity.inbound import IdentityPolicy
        from frontdesk.identity.oauth_server import AuthorizationServer, OAuthServerConfig
        from frontdesk.identity.rates import RateLimiter
        from frontdesk.identity.service import AgentLookup, Identity
        from frontdesk.identity.store import BucketStore, McpSessionStore, OAuthStore

        settings, database = self.settings, self.database

        async def knows(agent_id: str) -> bool:
            return await self.host.find(agent_id) is not None

        async def bounds(agent_id: str) -> "Authority":
            # Letta's agents may call any process during their turn; built-in agents call the process of their turn.
            return await self.turns.current_authority(
                agent_lock(agent_id) if settings.letta_base_url else None, agent_id
            )

        return Identity(
            IdentityPolicy.of(settings),
            self.keys,
            self.tokens,
            RateLimiter(settings.rate_agent, settings.rate_user, BucketStore(database) if database.shared else None),
            AgentLookup(knows, lambda: only_agent(self.host), bounds),
            oauth=AuthorizationServer(
                OAuthStore(database), OAuthServerConfig.of(settings, base_url(settings), token_audiences(settings))
            ),
            sealed=McpSessionStore(database),
            log_sources=settings.debug_agent_id_source,
        )

    @cached_property
    def embedder(self) -> "Embedder | None":
        from frontdesk.embedding import open_embedder

        settings = self.settings
        return open_embedder(settings.embeddings, settings.embeddings_model, settings.embeddings_key)

    @cached_property
    def tool_runtime(self) -> "ToolRuntime":
        """The part of the tools that the built-in agents' host needs."""
        from frontdesk.platform_servers import platform_source
        from frontdesk.tools.build import open_tool_runtime

        platform = partial(platform_source, self.settings)
        return open_tool_runtime(self.settings, self.database, self.journal, self.embedder, platform)

    @cached_property
    def tools(self) -> "ToolService":
        from frontdesk.tools.build import open_tools

        return open_tools(self.settings, self.database, self.host, self.tool_runtime, self.journal, self._tasks)

    @cached_property
    def turns(self) -> "TurnService":
        from frontdesk.agents.turns.service import TurnService
        from frontdesk.agents.turns.store import TurnStore

        return TurnService(TurnStore(self.database), self._tasks)

    @cached_property
    def _hosting(self) -> "Hosting":
        """The host of the agents, with what depends on which host it is."""
        from frontdesk.agents.embedded.host import EmbeddedHost
        from frontdesk.llm.access import ModelAccess

        if self.settings.letta_base_url is not None:
            return self._open_letta(self.settings.letta_base_url)
        access = ModelAccess.from_settings(self.settings)
        return Hosting(
            EmbeddedHost(self.database, self.turns, access, self._tool_binder, self._agent_tools.for_caller), None, ()
        )

    def _tool_binder(self) -> "ToolBinder":
        from frontdesk.agents.embedded.tools import ToolBinder

        # Built-in agents call tools through the same dispatcher as all callers.
        runtime, calls = self.tool_runtime, self.tool_runtime.dispatcher
        return ToolBinder(calls.call_attached, runtime.servers, runtime.clients, calls.attached_reads_only)

    def _open_letta(self, address: str) -> "Hosting":
        # Letta's client comes with an extra.
        try:
            from frontdesk.adapters import person_data_on_letta
            from frontdesk.agents.letta.host import LettaHost
            from frontdesk.agents.letta.people import AgentAssignments
            from frontdesk.agents.letta.people_store import AgentAssignmentStore
            from frontdesk.agents.letta.tools import ToolRegistrar, upload_tool
        except ModuleNotFoundError as missing:
            if missing.name not in LETTA_PACKAGES:
                raise
            raise ConfigurationError(
                f"LETTA_BASE_URL is set, and agents on a Letta server need the Python package {missing.name}, which is "
                "not installed: run pip install 'frontdesk[letta]', or unset LETTA_BASE_URL for agents on the built-in "
                "host"
            ) from missing

        settings = self.settings
        secret = settings.letta_secret.get_secret_value() if settings.letta_secret else None
        registrar = ToolRegistrar(self.handed, self.keys, base_url(settings))
        people = AgentAssignments(AgentAssignmentStore(self.database), self.keys)
        host = LettaHost(
            address, secret, self.turns, settings.model, registrar, people, image_models=settings.image_models
        )
        return Hosting(host, partial(upload_tool, host.server), person_data_on_letta(host))

    @property
    def host(self) -> "AgentHost":
        return self._hosting.host

    def open_host(self) -> None:
        """Open the host now, so that a wrong setting of it is reported before anything else."""
        _ = self._hosting

    @cached_property
    def handed(self) -> "HandedToolStore":
        from frontdesk.agents.letta.handed_store import HandedToolStore

        return HandedToolStore(self.database)

    @cached_property
    def chat(self) -> "ChatService":
        from frontdesk.agents.chat.replies import ReplyService
        from frontdesk.agents.chat.service import ChatService
        from frontdesk.agents.chat.store import ChatSessionStore, ReplyStore

        mirror = ReplyStore(self.database) if self.database.shared else None
        replies = ReplyService(self.host, self.journal, self._tasks, self.turns.close, mirror)
        return ChatService(ChatSessionStore(self.database), self.host, replies)

    @cached_property
    def workspace(self) -> "CodingService":
        from frontdesk.coding.service import open_coding

        return open_coding(self.settings, self.database, self.host)

    @cached_property
    def _scheduling(self) -> "tuple[ScheduleService, Worker]":
        from frontdesk.schedules.service import open_schedules

        async def has_conversation(user_id: str, agent_id: str, conversation_id: str) -> bool:
            return await self.workspace.sessions.has_conversation(user_id, agent_id, conversation_id)

        registry, upload = self.metrics.registry, self._hosting.upload_tool
        return open_schedules(self.settings, self.database, self.host, upload, registry, self._tasks, has_conversation)

    @property
    def schedules(self) -> "ScheduleService":
        return self._scheduling[0]

    @property
    def worker(self) -> "Worker":
        return self._scheduling[1]

    @cached_property
    def _remembering(self) -> "tuple[RecordServices, MemoryIndexer]":
        from frontdesk.adapters import AgentNames, TaskWakeups, person_data_outside_memory
        from frontdesk.memory.service import MemoryDependencies, StatusSources, open_memory

        waking, names = TaskWakeups(self), AgentNames(self.host)
        others = MemoryDependencies(
            waking.schedule,
            waking.cancel,
            names.id_of,
            names.name_of,
            (*self._hosting.person_data, *person_data_outside_memory(self)),
            StatusSources(self.check_parts, self.journal),
        )
        return open_memory(self.database, self.embedder, others)

    @property
    def memory(self) -> "RecordServices":
        return self._remembering[0]

    @property
    def memory_indexer(self) -> "MemoryIndexer":
        return self._remembering[1]

    async def close(self) -> None:
        """Close the services that were opened, those that use others first; an error in one does not skip the rest."""
        opened = self.__dict__
        # The last one that is added is closed first.
        async with AsyncExitStack() as closing:
            if "journal" in opened:
                closing.push_async_callback(_flush_journal, self.journal)
            if "embedder" in opened and self.embedder is not None:
                closing.push_async_callback(self.embedder.close)
            if "tool_runtime" in opened:
                closing.push_async_callback(self.tool_runtime.close)
            if "_hosting" in opened:
                closing.push_async_callback(self.host.close)
            if "turns" in opened:
                closing.push_async_callback(self.turns.close)
            if "tokens" in opened:
                closing.push_async_callback(self.tokens.close)
            if "sign_in_issuers" in opened:
                closing.push_async_callback(self.sign_in_issuers.close)
            if "chat" in opened:
                closing.push_async_callback(self.chat.close)
            if "_scheduling" in opened:
                closing.push_async_callback(self.schedules.executor.close)

    async def check_parts(self) -> dict[str, str]:
        """The state of each part: `ok`, or what is wrong with it."""
        return await check_parts(self.database)

    def bind(self, operation: Operation, service: object) -> BoundOperation:
        return BoundOperation(operation, service, self.identity.require_agent)

    def operations(self) -> Sequence[BoundOperation]:
        """Every operation with the service that runs it."""
        from frontdesk.operation_table import OPERATIONS

        own = [self.bind(operation, self) for operation in CORE_OPERATIONS]
        return [*own, *(self.bind(one, getattr(self, name)) for name, every in OPERATIONS.items() for one in every)]

    async def has_tool_servers(self) -> bool:
        """Whether any tool server is known, by the settings or in the database."""
        from frontdesk.tools.catalogue_store import ServerStore

        settings = self.settings
        named = settings.mcp_servers or settings.tools_manifest or settings.platform_app_id
        return bool(named) or bool(await ServerStore(self.database).all())

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
        from frontdesk.agents.embedded.host import EmbeddedHost
        from frontdesk.llm.access import OFFLINE, ModelAccess

        # The offline model always opens, and the library takes a second to import.
        offline = ModelAccess.from_settings(self.settings).default_model == OFFLINE
        if isinstance(self.host, EmbeddedHost) and not offline:
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


@dataclass(frozen=True, slots=True)
class Hosting:
    """The host of the agents, its upload function if it has one, and the data of people that it keeps elsewhere."""

    host: "AgentHost"
    upload_tool: "UploadTool | None"
    person_data: "Sequence[OtherPersonData]"


@asynccontextmanager
async def open_app(settings: Settings, *, tools: bool = True) -> AsyncGenerator[App]:
    """Open the app without the background tasks, as commands need it. Without `tools`, none can be called."""
    async with AsyncExitStack() as stack:
        database = await Database.open(settings)
        stack.push_async_callback(database.close)
        app = App(settings, database, await stack.enter_async_context(background_group()))
        stack.push_async_callback(app.close)
        if tools:
            app.open_host()
            await app.tool_runtime.catalogue.load_servers()
        yield app


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
    from frontdesk.agents.embedded.host import EmbeddedHost

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


async def _flush_journal(journal: "Journal") -> None:
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

    model_config = ConfigDict(frozen=True, defer_build=True)

    status: str
    letta_base_url: str
    db: str
    auth_set: bool


class WhoamiOutput(BaseModel):
    """The caller as Frontdesk sees it."""

    model_config = ConfigDict(frozen=True, defer_build=True)

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
