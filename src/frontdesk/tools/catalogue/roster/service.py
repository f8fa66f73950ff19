"""The servers this process knows: what settings, manifest and platform name, what was added, the agent host itself."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import anyio
import structlog

from frontdesk.errors import ConfigurationError, Conflict, Invalid, NotFound
from frontdesk.loop.mcp.model import McpServer
from frontdesk.loop.mcp.servers import Servers
from frontdesk.loop.text import not_there
from frontdesk.tools.catalogue.manifest import read_manifest
from frontdesk.tools.catalogue.roster.model import ServerState
from frontdesk.tools.catalogue.roster.platform import OfPlatform, Platform
from frontdesk.tools.catalogue.roster.store import RosterStore
from frontdesk.tools.catalogue.servers import HOST_SPEC, Origin, ServerSpec, Transport, connectable

log = structlog.get_logger("frontdesk.tools.roster")


@dataclass(frozen=True, slots=True)
class Named:
    """Where servers are named besides `frontdesk tools add`; the platform is asked again `every` so often."""

    settings: Sequence[ServerSpec] = ()
    manifest: Path | None = None
    platform: Platform | None = None
    every: timedelta = timedelta(minutes=15)


class Roster:
    """Settings come before the manifest, and both before what was added under the same name.

    The platform comes last: what others call their servers takes nobody's place.
    """

    def __init__(self, store: RosterStore, servers: Servers, named: Named, *, host: bool) -> None:
        self._store = store
        self._servers = servers
        self._named = named
        self._host = (HOST_SPEC,) if host else ()
        self._of_manifest: Sequence[ServerSpec] = ()
        self._of_platform = OfPlatform(named.platform, named.every)
        self._declared: Mapping[str, ServerSpec] = {}
        self.states: Mapping[str, ServerState] = {}
        # Those that can be asked from here: of what other replicas' settings name, only they know the secrets.
        self.ours: Collection[str] = ()
        self._trouble = ""
        self._unreachable: dict[str, str] = {}
        self._loading = anyio.Lock()

    @property
    def trouble(self) -> str:
        """What is wrong with those who name servers."""
        return "; ".join(part for part in (self._trouble, self._of_platform.trouble) if part)

    async def discover(self, now: datetime) -> bool:
        """Ask the platform, if it is time to; whether it answered."""
        return await self._of_platform.ask(now)

    async def declare(self, now: datetime) -> None:
        """Write down what is named here, and take off what no longer is."""
        await self._read()
        added = {state.name for state in await self._store.all() if state.spec.origin is Origin.ADDED}
        await self._store.declare([spec for name, spec in self._declared.items() if name not in added], now)
        # What the platform named before goes on, until it says otherwise.
        kept = (Origin.PLATFORM,) if self._of_platform.waiting else ()
        dropped = await self._store.undeclared(self._declared.keys(), now, kept)
        if dropped:
            log.info("servers_dropped", servers=sorted(dropped))
            await self._store.remove(dropped, now)
        await self.load()

    async def load(self) -> None:
        """See the roster as it is now, and let this process reach those on it."""
        # One after the other: what was read first must not take the place of what was read since.
        async with self._loading:
            if not self._declared:
                await self._read()
            states = {state.name: state for state in await self._store.all()}
            recalled = {spec.name: spec for spec in self._recalled(states.values())}
            for spec in (*recalled.values(), *self._declared.values()):
                before = states.get(spec.name, ServerState(spec))
                if not _is_added(before.spec) or spec.origin is not Origin.PLATFORM:
                    states[spec.name] = replace(before, spec=spec)
            self.states = dict(sorted(states.items()))
            named = self._declared.keys() | recalled.keys()
            self.ours = frozenset(name for name, one in states.items() if name in named or _is_added(one.spec))
            self._servers.set_all(list(self._reachable()))

    def spec(self, name: str) -> ServerSpec:
        found = self.states.get(name)
        if found is None:
            raise NotFound(not_there(f"There is no tool server '{name}'", name, list(self.states)))
        return found.spec

    async def add(self, spec: ServerSpec) -> None:
        """Put a server on the roster for good, in place of one that was added under the same name."""
        known = self._declared.get(spec.name)
        if known is not None and known.origin is not Origin.PLATFORM:
            raise Conflict(f"The tool server '{spec.name}' is named in the {known.origin}; change it there")
        try:
            connectable(spec)
        except ConfigurationError as error:
            raise Invalid(str(error)) from None
        await self._store.put([replace(spec, origin=Origin.ADDED)])
        await self.load()

    async def remove(self, name: str, now: datetime) -> None:
        known = self._declared.get(name)
        if known is None or known.origin is Origin.PLATFORM:
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
                # What it said before goes on: somebody may be editing it.
                self._trouble = str(error)
                log.warning("manifest_not_read", error=str(error))
        # The last of a name counts.
        named = (*self._of_platform.servers, *self._host, *self._of_manifest, *self._named.settings)
        self._declared = {spec.name: spec for spec in named}

    def _recalled(self, states: Iterable[ServerState]) -> Iterator[ServerSpec]:
        """What the platform named before, as far as it can be reached without asking it first."""
        for state in states:
            if state.spec.origin is Origin.PLATFORM and (spec := self._of_platform.recall(state.spec)) is not None:
                yield spec

    def _reachable(self) -> Iterator[McpServer]:
        for state in self.states.values():
            spec = state.spec
            if spec.transport is Transport.HOST or spec.name not in self.ours:
                continue
            try:
                yield connectable(spec)
                self._unreachable.pop(spec.name, None)
            except ConfigurationError as error:
                # Once is enough: this is looked at whenever anything changes.
                if self._unreachable.get(spec.name) != str(error):
                    log.warning("server_not_reachable", server=spec.name, error=str(error))
                self._unreachable[spec.name] = str(error)


def _is_added(spec: ServerSpec) -> bool:
    return spec.origin is Origin.ADDED
