"""Collects the tool servers from settings, the manifest, Agent 365, the database and the agent host."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import anyio
import structlog

from frontdesk.errors import ConfigurationError, Conflict, Invalid, NotFound, Unavailable
from frontdesk.mcp_client.model import McpServer
from frontdesk.mcp_client.pool import KnownServers
from frontdesk.text import not_found_message
from frontdesk.tools.catalogue_store import ServerStore
from frontdesk.tools.manifest import read_manifest
from frontdesk.tools.servers import HOST_SPEC, ServerOrigin, ServerSpec, ServerState, Transport, to_mcp_server

# The longest wait before a platform that did not answer is asked again.
PLATFORM_RETRY = timedelta(seconds=60)

log = structlog.get_logger("frontdesk.tools.server_registry")


@dataclass(frozen=True, slots=True)
class DiscoveredServers:
    """The servers that can be reached, and notes about them and about those that were left out."""

    servers: Sequence[ServerSpec] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class PlatformSource:
    """`discover` asks the platform, or raises `Unavailable`. `recall` makes a known server reachable without asking."""

    discover: Callable[[], Awaitable[DiscoveredServers]]
    recall: Callable[[ServerSpec], ServerSpec | None]


class PlatformServers:
    """The last answer of the platform; `waiting` until there is one."""

    def __init__(self, platform: PlatformSource | None, every: timedelta) -> None:
        self._platform = platform
        self._every = every
        self._asked_at: datetime | None = None
        self._failed = False
        self._asking = anyio.Lock()
        self.servers: Sequence[ServerSpec] = ()
        self.waiting = platform is not None
        self.trouble = ""

    async def ask(self, now: datetime) -> bool:
        """Ask the platform, if it is time to. Returns whether it answered."""
        if self._platform is None:
            return False
        async with self._asking:
            return await self._discover(self._platform, now) if self._due(now) else False

    def recall(self, spec: ServerSpec) -> ServerSpec | None:
        """A server from the platform's last answer to any replica, until it has answered this one."""
        return self._platform.recall(spec) if self._platform is not None and self.waiting else None

    def _due(self, now: datetime) -> bool:
        pause = min(PLATFORM_RETRY, self._every) if self._failed else self._every
        return self._asked_at is None or not timedelta() <= now - self._asked_at < pause

    async def _discover(self, platform: PlatformSource, now: datetime) -> bool:
        self._asked_at = now
        try:
            found = await platform.discover()
        except Unavailable as error:
            self._failed = True
            if self._note_problem(str(error)):
                log.warning("platform_not_asked", error=str(error))
            return False
        self._failed, self.waiting, self.servers = False, False, found.servers
        if self._note_problem("; ".join(found.notes)):
            log.warning("platform_servers_wait", notes=list(found.notes))
        return True

    def _note_problem(self, trouble: str) -> bool:
        """Record a problem. Returns whether it is new."""
        news, self.trouble = trouble != self.trouble, trouble
        return news and bool(trouble)


@dataclass(frozen=True, slots=True)
class ServerSources:
    """The sources of servers besides `frontdesk tools add`. The platform is asked again after `every`."""

    settings: Sequence[ServerSpec] = ()
    manifest: Path | None = None
    platform: PlatformSource | None = None
    every: timedelta = timedelta(minutes=15)


class ServerRegistry:
    """The servers from all sources. For the same name, settings come first, then the manifest, then added servers.

    The platform comes last: its servers never replace others.
    """

    def __init__(self, store: ServerStore, servers: KnownServers, named: ServerSources, *, host: bool) -> None:
        self._store = store
        self._servers = servers
        self._named = named
        self._host = (HOST_SPEC,) if host else ()
        self._of_manifest: Sequence[ServerSpec] = ()
        self._of_platform = PlatformServers(named.platform, named.every)
        self._declared: Mapping[str, ServerSpec] = {}
        self.states: Mapping[str, ServerState] = {}
        # The servers that can be called from here: only the replica whose settings name a server has its secrets.
        self.reachable_names: Collection[str] = ()
        self._trouble = ""
        self._unreachable: dict[str, str] = {}
        self._loading = anyio.Lock()

    @property
    def trouble(self) -> str:
        """The problems of the sources."""
        return "; ".join(part for part in (self._trouble, self._of_platform.trouble) if part)

    async def discover(self, now: datetime) -> bool:
        """Ask the platform, if it is time to. Returns whether it answered."""
        return await self._of_platform.ask(now)

    async def declare(self, now: datetime) -> None:
        """Store the servers that are declared here, and remove those that no longer are."""
        await self._read()
        added = {state.name for state in await self._store.all() if state.spec.origin is ServerOrigin.ADDED}
        await self._store.declare([spec for name, spec in self._declared.items() if name not in added], now)
        # Servers that the platform declared before stay until its next answer.
        kept = (ServerOrigin.PLATFORM,) if self._of_platform.waiting else ()
        dropped = await self._store.undeclared(self._declared.keys(), now, kept)
        if dropped:
            log.info("servers_dropped", servers=sorted(dropped))
            await self._store.remove(dropped, now)
        await self.load()

    async def load(self) -> None:
        """Read the stored servers, and make them reachable from this process."""
        # One at a time, because an older state must not replace a newer one.
        async with self._loading:
            if not self._declared:
                await self._read()
            states = {state.name: state for state in await self._store.all()}
            recalled = {spec.name: spec for spec in self._recalled(states.values())}
            for spec in (*recalled.values(), *self._declared.values()):
                before = states.get(spec.name, ServerState(spec))
                if not _is_added(before.spec) or spec.origin is not ServerOrigin.PLATFORM:
                    states[spec.name] = replace(before, spec=spec)
            self.states = dict(sorted(states.items()))
            named = self._declared.keys() | recalled.keys()
            self.reachable_names = frozenset(
                name for name, one in states.items() if name in named or _is_added(one.spec)
            )
            self._servers.set_all(list(self._reachable()))

    def spec(self, name: str) -> ServerSpec:
        found = self.states.get(name)
        if found is None:
            raise NotFound(not_found_message(f"There is no tool server '{name}'", name, list(self.states)))
        return found.spec

    async def add(self, spec: ServerSpec) -> None:
        """Store an added server; it replaces an added server with the same name."""
        known = self._declared.get(spec.name)
        if known is not None and known.origin is not ServerOrigin.PLATFORM:
            raise Conflict(f"The tool server '{spec.name}' is named in the {known.origin}; change it there")
        try:
            to_mcp_server(spec)
        except ConfigurationError as error:
            raise Invalid(str(error)) from None
        await self._store.put([replace(spec, origin=ServerOrigin.ADDED)])
        await self.load()

    async def remove(self, name: str, now: datetime) -> None:
        known = self._declared.get(name)
        if known is None or known.origin is ServerOrigin.PLATFORM:
            known = self.spec(name)
        if not _is_added(known):
            raise Conflict(f"The tool server '{name}' is named in the {known.origin}; remove it there")
        await self._store.remove([name], now)
        await self.load()

    async def _read(self) -> None:
        if self._named.manifest is not None:
            try:
                self._of_manifest = await anyio.to_thread.run_sync(read_manifest, self._named.manifest)
                self._trouble = ""
            except ConfigurationError as error:
                # The last valid manifest stays in use, because somebody may be editing the file.
                self._trouble = str(error)
                log.warning("manifest_not_read", error=str(error))
        # If several servers have one name, the last is used.
        named = (*self._of_platform.servers, *self._host, *self._of_manifest, *self._named.settings)
        self._declared = {spec.name: spec for spec in named}

    def _recalled(self, states: Iterable[ServerState]) -> Iterator[ServerSpec]:
        """The servers that the platform declared before, if they can be reached without asking it."""
        for state in states:
            if (
                state.spec.origin is ServerOrigin.PLATFORM
                and (spec := self._of_platform.recall(state.spec)) is not None
            ):
                yield spec

    def _reachable(self) -> Iterator[McpServer]:
        for state in self.states.values():
            spec = state.spec
            if spec.transport is Transport.HOST or spec.name not in self.reachable_names:
                continue
            try:
                yield to_mcp_server(spec)
                self._unreachable.pop(spec.name, None)
            except ConfigurationError as error:
                # Logged only once, because this runs whenever anything changes.
                if self._unreachable.get(spec.name) != str(error):
                    log.warning("server_not_reachable", server=spec.name, error=str(error))
                self._unreachable[spec.name] = str(error)


def _is_added(spec: ServerSpec) -> bool:
    return spec.origin is ServerOrigin.ADDED
