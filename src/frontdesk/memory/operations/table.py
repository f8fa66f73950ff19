"""Lists all memory tools with the scopes that they need, and gives them to built-in agents.

The tool for the system's status is defined here too.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from pydantic import Field, SecretStr

from frontdesk import __version__
from frontdesk.identity import rights
from frontdesk.identity.model import Caller
from frontdesk.journal.model import JournalEntry, Outcome
from frontdesk.journal.service import Journal
from frontdesk.journal.store import JournalQuery
from frontdesk.llm.tools import Tool, ToolOutcome, typed_tool
from frontdesk.memory.model import PersonScope
from frontdesk.memory.operations.activities import ACTIVITY_TOOLS
from frontdesk.memory.operations.base import (
    MemoryRequest,
    MemoryTool,
    MemoryToolResult,
    StatusSources,
    ToolAnswer,
    format_time,
    join_lines,
    person_zone,
)
from frontdesk.memory.operations.memories import MEMORY_TOOLS
from frontdesk.memory.operations.tasks import TASK_TOOLS, TIME_TOOLS
from frontdesk.memory.operations.timeline import CATEGORY_TOOLS, TIMELINE_TOOLS
from frontdesk.memory.operations.work_queue import WORK_QUEUE_TOOLS
from frontdesk.memory.service import RecordServices


class GetSystemStatus(MemoryRequest):
    """What to include."""

    include_recent_errors: bool = Field(True, description="Name your own calls of the last day that went wrong.")
    check_connectivity: bool = Field(True, description="Ask the parts that we depend on whether they answer.")


STATUS_NAME = "get_system_status"
STATUS_TITLE = "How the desk is doing"
STATUS_DESCRIPTION = (
    "Whether the desk works, which version it is, and which of the person's own calls went wrong in the last day. "
    "Use it when other tools fail in a way that you cannot explain."
)
RECENT = timedelta(days=1)
MAX_ERRORS = 10
OK, NO_ANSWER = "ok", "does not answer"
FAILED_OUTCOMES = (Outcome.FAILED, Outcome.REFUSED, Outcome.DENIED, Outcome.LIMITED)


class RecentError(ToolAnswer):
    """A call that failed. Its content is never stored."""

    at: datetime
    action: str
    outcome: Outcome
    reason: str | None


class SystemStatusAnswer(ToolAnswer):
    """`parts` is empty if they were not checked. The errors are the person's own, the latest first."""

    status: str
    version: str
    time: datetime
    user_id: str
    agent_id: str | None
    parts: Mapping[str, str]
    recent_errors: Sequence[RecentError]


async def system_status_tool(
    sources: StatusSources, services: RecordServices, scope: PersonScope, request: GetSystemStatus
) -> MemoryToolResult:
    parts: Mapping[str, str] = await _check_parts(sources) if request.check_connectivity else {}
    healthy = all(state == OK for state in parts.values())
    # The errors are in the database, so they are read only if it answers.
    asked = request.include_recent_errors and healthy
    wrong = await _read_recent_errors(sources.journal, scope) if asked else ()
    answer = SystemStatusAnswer(
        status="healthy" if healthy else "unhealthy",
        version=__version__,
        time=datetime.now(UTC),
        user_id=scope.user_id,
        agent_id=scope.agent_id,
        parts=parts,
        recent_errors=[RecentError(at=e.at, action=e.action, outcome=e.outcome, reason=e.reason) for e in wrong],
    )
    return MemoryToolResult(
        _format_system_status(answer, await person_zone(services, scope) if asked else None), answer
    )


def status_tool(sources: StatusSources) -> MemoryTool:
    return MemoryTool(
        STATUS_NAME,
        STATUS_TITLE,
        STATUS_DESCRIPTION,
        GetSystemStatus,
        SystemStatusAnswer,
        partial(system_status_tool, sources),
    )


async def _check_parts(sources: StatusSources) -> Mapping[str, str]:
    """The state of each part. Details are only for administrators."""
    return {name: OK if state == OK else NO_ANSWER for name, state in (await sources.parts()).items()}


async def _read_recent_errors(journal: Journal, scope: PersonScope) -> Sequence[JournalEntry]:
    await journal.flush()
    since, found = datetime.now(UTC) - RECENT, list[JournalEntry]()
    for outcome in FAILED_OUTCOMES:
        query = JournalQuery(user_id=scope.user_id, outcome=outcome, since=since, limit=MAX_ERRORS)
        found += [entry for _, entry in await journal.read(query)]
    return sorted(found, key=lambda entry: entry.at, reverse=True)[:MAX_ERRORS]


def _format_system_status(answer: SystemStatusAnswer, zone: ZoneInfo | None) -> str:
    """The status as text; with a zone, the recent errors too."""
    agent = f", acting through the agent {answer.agent_id}" if answer.agent_id else ""
    head = (
        f"Frontdesk {answer.version} is {answer.status}.",
        ", ".join(f"{name}: {state}" for name, state in answer.parts.items()),
        f"You are {answer.user_id}{agent}.",
    )
    if zone is None:
        return join_lines(*head)
    wrong = [f"- {format_time(one.at, zone)} {one.action}: {_format_reason(one)}" for one in answer.recent_errors]
    return join_lines(
        *head, "What went wrong in the last day:" if wrong else "Nothing went wrong in the last day.", *wrong
    )


def _format_reason(one: RecentError) -> str:
    return f"{one.outcome} ({one.reason})" if one.reason else one.outcome


# The tools that need only a person's records.
RECORD_TOOLS: tuple[MemoryTool, ...] = (
    *TASK_TOOLS,
    *MEMORY_TOOLS,
    *ACTIVITY_TOOLS,
    *TIMELINE_TOOLS,
    *TIME_TOOLS,
    *WORK_QUEUE_TOOLS,
)
# The scopes that reading and writing a group of records needs. The services check them for every caller.
_GROUP_RIGHTS = (
    (ACTIVITY_TOOLS, rights.ACTIVITIES_READ, rights.ACTIVITIES_WRITE),
    (CATEGORY_TOOLS, rights.CATEGORIES_READ, rights.CATEGORIES_WRITE),
    (MEMORY_TOOLS, rights.MEMORIES_READ, rights.MEMORIES_WRITE),
    (WORK_QUEUE_TOOLS, rights.AI_TASKS_READ, rights.AI_TASKS_WRITE),
    (TASK_TOOLS, rights.TASKS_READ, rights.TASKS_WRITE),
    (TIMELINE_TOOLS, rights.TIMELINE_READ, rights.TIMELINE_WRITE),
    (TIME_TOOLS, rights.TASKS_TIME, rights.TASKS_TIME),
)
REQUIRED_RIGHTS: Mapping[str, str] = {
    tool.name: read if tool.read_only else write for group, read, write in _GROUP_RIGHTS for tool in group
}
# Every tool costs a model attention, and categories can also be created and found by their names.
EXTRA_TOOLS: tuple[MemoryTool, ...] = CATEGORY_TOOLS


def agent_tools(sources: StatusSources) -> tuple[MemoryTool, ...]:
    """The memory tools of an agent."""
    return (status_tool(sources), *RECORD_TOOLS)


class BuiltinMemoryTools:
    """Gives the tools to the agent host, which is opened before the memory services."""

    def __init__(self) -> None:
        self._services: RecordServices | None = None
        self._status_sources: StatusSources | None = None
        self._tools: Sequence[MemoryTool] | None = None

    def open(self, services: RecordServices, sources: StatusSources) -> None:
        self._services, self._status_sources = services, sources

    def for_caller(self, caller: Caller, _user_token: SecretStr | None) -> Sequence[Tool]:
        """The tools for the person of this turn; none if there is no known person."""
        services, sources = self._services, self._status_sources
        if services is None or sources is None or caller.user_id is None or _is_unproven(caller):
            return ()
        self._tools = self._tools or _agent_tools(sources)
        scope = PersonScope(caller.user_id, caller.agent_id, caller.scopes, caller.credential_id)
        return [_bind_tool(tool, services, scope) for tool in self._tools]


def _agent_tools(sources: StatusSources) -> Sequence[MemoryTool]:
    # These modules take a while to load, and most commands need no agent.
    from frontdesk.memory.operations.table import agent_tools  # noqa: PLC0415

    return agent_tools(sources)


def _is_unproven(caller: Caller) -> bool:
    """Whether the credential identifies nobody: all visitors of the chat without a key share one."""
    return caller.credential_id is not None and not caller.verified


def _bind_tool(tool: MemoryTool, services: RecordServices, scope: PersonScope) -> Tool:
    async def run(request: MemoryRequest) -> ToolOutcome:
        return ToolOutcome((await tool.run(services, scope, request)).text)

    from frontdesk.memory.operations.table import REQUIRED_RIGHTS  # noqa: PLC0415 - as above

    scope_needed, reads_only = REQUIRED_RIGHTS.get(tool.name), tool.read_only
    return typed_tool(tool.name, tool.description, tool.arguments, run, scope_needed, reads_only=reads_only)
