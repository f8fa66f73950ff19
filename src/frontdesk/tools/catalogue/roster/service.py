"""The servers this process knows: what settings and manifest name, what was added, and the agent host itself."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import anyio
import structlog

from frontdesk.errors import ConfigurationError, Conflict, Invalid, NotFound
from frontdesk.loop.mcp.model import McpServer
from frontdesk.loop.mcp.servers import Servers
from frontdesk.tools.catalogue.manifest import read_manifest
from frontdesk.tools.catalogue.roster.model import ServerState
from frontdesk.tools.catalogue.roster.store import RosterStore
from frontdesk.tools.catalogue.servers import HOST_SPEC, Origin, ServerSpec, Transport, connectable

log = structlog.get_logger("frontdesk.tools.roster")


@dataclass(frozen=True, slots=True)
class Named:
    """Where servers are named besides `frontdesk tools add`."""

    settings: Sequence[ServerSpec] = ()
    manifest: Path | None = None


class Roster:
    """Settings come before the manifest, and both before what was added under the same name."""

    def __init__(self, store: RosterStore, servers: Servers, named: Named, *, host: bool) -> None:
        self._store = store
        self._servers = servers
        self._named = named
        self._host = (HOST_SPEC,) if host else ()
        self._of_manifest: Sequence[ServerSpec] = ()
        self._declared: Mapping[str, ServerSpec] = {}
        self.states: Mapping[str, ServerState] = {}
        self.trouble = ""
        self._unreachable: dict[str, str] = {}
        self._loading = anyio.Lock()

    async def declare(self, now: datetime) -> None:
        """Write down what is named here, and take off what no longer is."""
        await self._read()
        added = {state.name for state in await self._store.all() if state.spec.origin is Origin.ADDED}
        await self._store.declare([spec for name, spec in self._declared.items() if name not in added], now)
        dropped = await self._store.undeclared(self._declared.keys(), now)
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
            for name, spec in self._declared.items():
                states[name] = replace(states.get(name, ServerState(spec)), spec=spec)
            self.states = dict(sorted(states.items()))
            self._servers.set_all(list(self._reachable()))

    def spec(self, name: str) -> ServerSpec:
        found = self.states.get(name)
        if found is None:
            raise NotFound(f"There is no tool server '{name}'; there are: {', '.join(self.states) or 'none'}")
        return found.spec

    async def add(self, spec: ServerSpec) -> None:
        """Put a server on the roster for good, in place of one that was added under the same name."""
        known = self._declared.get(spec.name)
        if known is not None:
            raise Conflict(f"The tool server '{spec.name}' is named in the {known.origin}; change it there")
        try:
            connectable(spec)
        except ConfigurationError as error:
            raise Invalid(str(error)) from None
        await self._store.put([replace(spec, origin=Origin.ADDED)])
        await self.load()

    async def remove(self, name: str, now: datetime) -> None:
        known = self._declared.get(name) or self.spec(name)
        if known.origin is not Origin.ADDED:
            raise Conflict(f"The tool server '{name}' is named in the {known.origin}; remove it there")
        await self._store.remove([name], now)
        await self.load()

    async def _read(self) -> None:
        if self._named.manifest is not None:
            try:
                self._of_manifest = await anyio.to_thread.run_sync(read_manifest, self._named.manifest)
                self.trouble = ""
            except ConfigurationError as error:
                # What it said before goes on: somebody may be editing it.
                self.trouble = str(error)
                log.warning("manifest_not_read", error=str(error))
        self._declared = {spec.name: spec for spec in (*self._host, *self._of_manifest, *self._named.settings)}

    def _reachable(self) -> Iterator[McpServer]:
        for state in self.states.values():
            spec = state.spec
            # What other replicas' settings name cannot be reached from here: only they know its secrets.
            ours = spec.origin is Origin.ADDED or spec.name in self._declared
            if spec.transport is Transport.HOST or not ours:
                continue
            try:
                yield connectable(spec)
                self._unreachable.pop(spec.name, None)
            except ConfigurationError as error:
                # Once is enough: this is looked at whenever anything changes.
                if self._unreachable.get(spec.name) != str(error):
                    log.warning("server_not_reachable", server=spec.name, error=str(error))
                self._unreachable[spec.name] = str(error)
