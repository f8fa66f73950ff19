"""Has a Letta server know the tools that its agents are handed: one at a time, and nobody else's touched."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

import anyio
from letta_client.types import StreamableHTTPMcpServer
from letta_client.types import Tool as LettaTool

from frontdesk.agents.letta.errors import LettaTrouble
from frontdesk.agents.letta.handed.entry import Entry, wanted_entry
from frontdesk.agents.letta.handed.model import Handed
from frontdesk.agents.letta.handed.store import HandedStore
from frontdesk.agents.letta.proof import REGISTRAR, key_in, working
from frontdesk.agents.letta.reach import explained
from frontdesk.agents.letta.server import Server
from frontdesk.agents.letta.words import server_of
from frontdesk.errors import Conflict, Unavailable
from frontdesk.identity.store import KeyStore

# One takes Letta a quarter of a second; a new entry has it read all that were handed out before.
REGISTER_SECONDS = 30
CREATE_SECONDS = 120


class Registrar:
    """`base_url` is where Letta reaches Frontdesk when nothing was registered by `frontdesk letta connect`."""

    def __init__(self, store: HandedStore, keys: KeyStore, base_url: str) -> None:
        self.store = store
        self._keys = keys
        self._base_url = base_url
        self._one_at_a_time = anyio.Lock()

    async def open(self, server: Server, tools: Sequence[Handed]) -> "Registration":
        """Make sure that Letta knows our door, and list the tools there."""
        # In this order: a door that is new to Letta is read as a whole, and these are about to be read one by one.
        async with self._one_at_a_time:
            entry = await self._entry(server)
        before = await self.store.named(tool.name for tool in tools)
        free = [tool for tool in tools if tool.name not in before or before[tool.name].identity == tool.identity]
        return Registration(server, self.store, entry, await self.store.put(free, datetime.now(UTC)))

    async def _entry(self, server: Server) -> Entry:
        with server.asking("MCP servers"):
            found = await server.client.mcp_servers.list()
        ours = [one for one in found if isinstance(one, StreamableHTTPMcpServer) and await self._is_ours(one)]
        entry = wanted_entry(ours, {one.server_name for one in found}, self._base_url)
        known = next((one for one in found if one.server_name == entry.name), None)
        if known is None:
            await _create(server, entry)
        elif not isinstance(known, StreamableHTTPMcpServer):
            raise Conflict(f"The Letta server has another kind of MCP server named '{entry.name}'; rename it there")
        elif not entry.is_like(known):
            await _update(server, known.id or "", entry)
        return entry

    async def _is_ours(self, known: StreamableHTTPMcpServer) -> bool:
        found = key_in(known.custom_headers)
        return found is not None and await working(self._keys, found, REGISTRAR, datetime.now(UTC)) is not None


@dataclass(frozen=True, slots=True)
class Registration:
    """Tools that our door lists, and the entry under which Letta is to know them."""

    server: Server
    store: HandedStore
    entry: Entry
    kept: Mapping[str, Handed]

    async def register(self, name: str, known: LettaTool | None) -> LettaTool:
        """The tool as Letta has it; `known` is the one that has this name there, for which it must be ours."""
        if name not in self.kept:
            raise Conflict(f"The name '{name}' belongs to another tool already; rename this tool's server")
        if known is not None:
            self._check(known)
            if self.kept[name].registered_as == self.entry.name:
                return known
        made = await self._add(name)
        self._check(made)
        await self.store.mark_registered(name, self.entry.name)
        return made

    async def _add(self, name: str) -> LettaTool:
        """The one call that adds a single tool; the others read all of a server's anew, and drop what it has lost."""
        path = f"/v1/tools/mcp/servers/{quote(self.entry.name, safe='')}/{quote(name, safe='')}"
        client = self.server.client.with_options(timeout=REGISTER_SECONDS, max_retries=0)
        try:
            with self.server.asking(f"tool '{name}' at {self.entry.url}"):
                return await client.post(path, cast_to=LettaTool)
        except Unavailable as error:
            raise LettaTrouble(
                f"The Letta server could not read '{name}' at {self.entry.url}; check that Frontdesk runs there and "
                "that Letta reaches it, and see `frontdesk letta connect`"
            ) from error

    def _check(self, tool: LettaTool) -> None:
        """Names are unique on a Letta server: whoever else has this one keeps it."""
        if (owner := server_of(tool)) != self.entry.name:
            whose = f"of the MCP server '{owner}'" if owner else "that is not Frontdesk's"
            raise Conflict(f"The Letta server has a tool '{tool.name}' {whose}; remove or rename it there first")


async def _create(server: Server, entry: Entry) -> None:
    client = server.client.with_options(timeout=CREATE_SECONDS, max_retries=0)
    # A conflict is another replica's doing, which wants the same.
    with suppress(Conflict), explained(entry.url), server.asking(f"MCP server '{entry.name}'"):
        await client.mcp_servers.create(
            server_name=entry.name,
            config={
                "mcp_server_type": "streamable_http",
                "server_url": entry.url,
                "custom_headers": dict(entry.headers),
            },
        )


async def _update(server: Server, server_id: str, entry: Entry) -> None:
    with explained(entry.url), server.asking(f"MCP server '{entry.name}'"):
        await server.client.mcp_servers.update(
            server_id,
            config={
                "mcp_server_type": "streamable_http",
                "server_url": entry.url,
                # None would leave those that are there.
                "custom_headers": dict(entry.headers),
            },
        )
