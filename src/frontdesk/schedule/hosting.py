"""What the scheduler asks of the agent host besides delivering: who is there, does it answer, take this tool."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import structlog

from frontdesk.agents.host import Agent, AgentHost
from frontdesk.errors import Denied, FrontdeskError, Invalid, Unavailable
from frontdesk.identity.model import Caller
from frontdesk.schedule import rights
from frontdesk.schedule.asked import HostTest, Uploaded

LISTED = 1000
LONGEST_SOURCE = 1_000_000
NO_UPLOAD = "Upload failed"

log = structlog.get_logger("frontdesk.schedule")

# (source code, description) -> (id, name)
Upload = Callable[[str, str | None], Awaitable[tuple[str, str | None]]]


@dataclass(frozen=True, slots=True)
class Hosted:
    """The host behind the scheduler; `upload` is None where it takes no tools, `keyed` says whether we have its key."""

    host: AgentHost
    address: str | None
    upload: Upload | None
    keyed: bool

    async def validate(self, agent_id: str) -> None:
        """Refuse an agent that the host does not know."""
        try:
            found = await self.host.find(agent_id)
        except Unavailable as error:
            raise Unavailable(
                f"Agent validation failed: {error}", public=f"Agent validation failed: {error.public}"
            ) from error
        if found is None:
            raise Invalid(f"Agent validation failed: agent '{agent_id}' is not known to the agent host")

    async def agents(self, caller: Caller) -> Sequence[Agent]:
        """The agents that the caller could name."""
        rights.may_read(caller)
        if rights.is_admin(caller) or (caller.any_agent and not rights.names_agent(caller)):
            return await self.host.list(LISTED)
        found = await self.host.find(caller.agent_id) if caller.agent_id else None
        return [found] if found is not None else []

    async def test(self, caller: Caller) -> HostTest:
        """Ask the host something that it can always answer."""
        rights.may_read(caller)
        await self.host.list(1)
        details = {"host": "letta", "base_url": self.address} if self.address else {"host": "built in"}
        return HostTest("Connected", details)

    async def upload_tool(
        self, caller: Caller, source_code: str, name: str | None = None, description: str | None = None
    ) -> Uploaded:
        """Give the host a tool made of Python source; it is called what its function is, and `name` is for the log."""
        rights.may_write(caller)
        log.info("tool_upload", name=name, request_id=caller.request_id)
        if not caller.keyless and not rights.is_admin(caller):
            raise Denied("Uploading tools is for callers at this machine, or a key with the scope 'schedules:admin'")
        if not self.keyed:
            raise Invalid("Missing LETTA_API_KEY or LETTA_SERVER_PASSWORD")
        if self.upload is None:
            raise Invalid(
                f"{NO_UPLOAD}: the built-in agents take no uploaded tools; set LETTA_BASE_URL, or add an MCP server"
            )
        if not source_code.strip() or len(source_code) > LONGEST_SOURCE:
            raise Invalid(
                f"{NO_UPLOAD}: source_code must be one top-level Python function with a docstring and type hints"
            )
        try:
            return Uploaded(*await self.upload(source_code, description))
        except Unavailable:
            raise
        except FrontdeskError as error:
            raise Invalid(f"{NO_UPLOAD}: {error.public}") from error
