"""Registers Frontdesk as an MCP server with Letta, with a key for each agent."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import anyio
from letta_client.types import AgentState, StreamableHTTPMcpServer

from frontdesk.agents.letta.convert import mcp_server_of
from frontdesk.agents.letta.host import LettaHost
from frontdesk.agents.letta.server import (
    KEY_SECRET,
    REGISTRATION_AGENT,
    explain_unreachable,
    find_working_key,
    key_from_headers,
    key_headers,
)
from frontdesk.errors import ConfigurationError, Conflict, FrontdeskError, NotFound
from frontdesk.identity import rights
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.service import Identity
from frontdesk.identity.store import KeyStore

KEY_NAME = "letta connect"
# Reading several hundred tools takes Letta half a minute.
SYNC_SECONDS = 120
UNDO_SECONDS = 10


@dataclass(frozen=True, slots=True)
class ConnectRequest:
    """What to register, and for which agents.

    `tools` are the names of all tools behind `url`. The agents get the tools in `handed`, or all of them if it is None.
    """

    url: str
    name: str
    tools: Sequence[str]
    agents: Sequence[str] = ()
    rotate: bool = False
    handed: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class AgentConnectResult:
    """What was done for one agent: whether it got a new key, and its tools."""

    id: str
    name: str
    new_key: bool
    attached: Sequence[str]


@dataclass(frozen=True, slots=True)
class ConnectResult:
    """The state after a connect."""

    created: bool
    tools: Sequence[str]
    agents: Sequence[AgentConnectResult]


class LettaConnector:
    """Connects agents; a second identical run changes nothing."""

    def __init__(self, host: LettaHost, identity: Identity, store: KeyStore) -> None:
        self._server = host.server
        self._client = host.server.client.with_options(timeout=SYNC_SECONDS, max_retries=0)
        self._identity = identity
        self._store = store

    async def connect(self, request: ConnectRequest) -> ConnectResult:
        if not request.url.startswith(("http://", "https://")):
            raise ConfigurationError(f"'{request.url}' is no address; write it as http://HOST:PORT/mcp")
        agents = [await self._agent(given) for given in request.agents]
        known = await self._registered(request.name)
        await self._check_names(request)
        tools = await self._register(request, known)
        given = {name: found for name, found in tools.items() if request.handed is None or name in request.handed}
        done = [await self._connect_agent(agent, given, rotate=request.rotate) for agent in agents]
        return ConnectResult(known is None, sorted(tools), done)

    async def _agent(self, text: str) -> AgentState:
        """Find an agent by its id, or by its name if only one agent has that name."""
        with self._server.translating_errors(f"agent '{text}'"):
            if text.startswith("agent-"):
                return await self._client.agents.retrieve(text, include=["agent.secrets", "agent.tools"])
            named = await self._client.agents.list(name=text, limit=2, order="asc")
            if len(named.items) != 1:
                many = "several agents" if named.items else "no agent"
                raise NotFound(f"The Letta server has {many} named '{text}'; give the id, as `agents list` shows it")
            found = named.items[0].id
            return await self._client.agents.retrieve(found, include=["agent.secrets", "agent.tools"])

    async def _registered(self, name: str) -> StreamableHTTPMcpServer | None:
        with self._server.translating_errors("MCP servers"):
            found = [server for server in await self._client.mcp_servers.list() if server.server_name == name]
        if found and not isinstance(found[0], StreamableHTTPMcpServer):
            raise Conflict(f"The Letta server has another kind of MCP server named '{name}'; give --name another one")
        return next((server for server in found if isinstance(server, StreamableHTTPMcpServer)), None)

    async def _check_names(self, request: ConnectRequest) -> None:
        """Tool names are unique on a Letta server: our tools would replace those of others for every agent there."""
        for name in request.tools:
            with self._server.translating_errors(f"tool '{name}'"):
                page = await self._client.tools.list(name=name, limit=1)
            for tool in page.items:
                if (owner := mcp_server_of(tool)) != request.name:
                    whose = f"of the MCP server '{owner}'" if owner else "that is not Frontdesk's"
                    raise Conflict(
                        f"The Letta server has a tool '{name}' {whose}, and names are unique there: connecting would "
                        f"put Frontdesk's in its place for every agent. Remove or rename it first, or connect under "
                        f"the name it was registered with (--name)"
                    )

    async def _register(self, request: ConnectRequest, known: StreamableHTTPMcpServer | None) -> Mapping[str, str]:
        """Register or update the server at Letta; returns the tools that Letta read there."""
        scopes = frozenset({rights.IDENTITY_READ})
        if known is None:
            async with (
                self._new_key(REGISTRATION_AGENT, None, scopes) as text,
                self._created(request, text) as server_id,
            ):
                return await self._tools(request, server_id)
        found = key_from_headers(known.custom_headers)
        old = await self._working(found, REGISTRATION_AGENT)
        if found is None or old is None or request.rotate:
            async with self._new_key(REGISTRATION_AGENT, old, scopes) as text:
                await self._update(known, request.url, text)
        elif known.server_url != request.url:
            await self._update(known, request.url, found)
        return await self._tools(request, known.id or "")

    @asynccontextmanager
    async def _created(self, request: ConnectRequest, key: str) -> AsyncGenerator[str]:
        """The id of a new registration, which stays only if Letta can read the tools."""
        about = f"MCP server '{request.name}'"
        with explain_unreachable(request.url), self._server.translating_errors(about):
            made = await self._client.mcp_servers.create(
                server_name=request.name,
                config={
                    "mcp_server_type": "streamable_http",
                    "server_url": request.url,
                    "custom_headers": key_headers(key),
                },
            )
        try:
            yield made.id or ""
        except BaseException:
            with (
                anyio.move_on_after(UNDO_SECONDS, shield=True),
                suppress(FrontdeskError),
                self._server.translating_errors(about),
            ):
                await self._client.mcp_servers.delete(made.id or "")
            raise

    async def _update(self, known: StreamableHTTPMcpServer, url: str, key: str) -> None:
        with explain_unreachable(url), self._server.translating_errors(f"MCP server '{known.server_name}'"):
            await self._client.mcp_servers.update(
                known.id or "",
                config={"mcp_server_type": "streamable_http", "server_url": url, "custom_headers": key_headers(key)},
            )

    async def _tools(self, request: ConnectRequest, server_id: str) -> Mapping[str, str]:
        """Our tools as Letta has them now, ids by name. Only a refresh shows whether Letta reaches us."""
        with explain_unreachable(request.url), self._server.translating_errors(f"way to {request.url}"):
            await self._client.mcp_servers.refresh(server_id)
            tools = await self._client.mcp_servers.tools.list(server_id)
        return {tool.name: tool.id for tool in tools if tool.name}

    async def _connect_agent(self, agent: AgentState, tools: Mapping[str, str], *, rotate: bool) -> AgentConnectResult:
        secrets = {secret.key: secret.value for secret in agent.secrets or ()}
        if "" in secrets.values():
            raise Conflict(
                f"The Letta server does not show the secrets of agent '{agent.id}', and setting one would drop the "
                f"others; make a key (frontdesk keys create --agent {agent.id}) and set it there as {KEY_SECRET}"
            )
        old = await self._working(secrets.get(KEY_SECRET), agent.id)
        if old is None or rotate:
            async with self._new_key(agent.id, old) as text:
                with self._server.translating_errors(f"agent '{agent.id}'"):
                    await self._client.agents.update(agent.id, secrets={**secrets, KEY_SECRET: text})
        held = {tool.name for tool in agent.tools or ()}
        missing = [name for name in tools if name not in held]
        for name in missing:
            with self._server.translating_errors(f"agent '{agent.id}'"):
                await self._client.agents.tools.attach(tools[name], agent_id=agent.id)
        return AgentConnectResult(agent.id, agent.name, old is None or rotate, missing)

    @asynccontextmanager
    async def _new_key(
        self, agent_id: str, old: ApiKey | None, scopes: frozenset[str] | None = None
    ) -> AsyncGenerator[str]:
        """A new key that stays only if Letta took it, and then replaces the old one."""
        replaced = None if old is None else old.id
        made, text = await self._identity.create_key(
            name=KEY_NAME, agent_id=agent_id, user_id=None, scopes=scopes, replaces=replaced
        )
        try:
            yield text
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._identity.revoke_key(made.id)
            raise
        if old is not None:
            # The old key is not revoked: tasks that the agent planned with it continue with the new key.
            await self._identity.expire_replaced_key(old.id)

    async def _working(self, text: str | None, agent_id: str) -> ApiKey | None:
        return await find_working_key(self._store, text, agent_id, datetime.now(UTC))
