"""Declares the operation that tells a person how Frontdesk is, and which of their own calls went wrong."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from pydantic import Field

from frontdesk import __version__
from frontdesk.journal.model import JournalEntry, Outcome
from frontdesk.journal.service import Journal
from frontdesk.journal.store import JournalQuery
from frontdesk.memory.model import PersonScope
from frontdesk.memory.operations.base import (
    MemoryRequest,
    ToolAnswer,
    for_person,
    format_time,
    join_lines,
    memory_agent_tool,
    memory_tool,
    person_zone,
)
from frontdesk.memory.service import RecordServices, StatusSources
from frontdesk.operations import Answer, Operation, Requires


class GetSystemStatus(MemoryRequest):
    """What to include."""

    include_recent_errors: bool = Field(True, description="Name your own calls of the last day that went wrong.")
    check_connectivity: bool = Field(True, description="Ask the parts that we depend on whether they answer.")


GET_SYSTEM_STATUS = (
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


async def get_system_status(services: RecordServices, scope: PersonScope, request: GetSystemStatus) -> Answer:
    parts: Mapping[str, str] = await _check_parts(services.status) if request.check_connectivity else {}
    healthy = all(state == OK for state in parts.values())
    # The errors are in the database, so they are read only if it answers.
    with_errors = request.include_recent_errors and healthy
    failed_calls = await _read_recent_errors(services.status.journal, scope) if with_errors else ()
    answer = SystemStatusAnswer(
        status="healthy" if healthy else "unhealthy",
        version=__version__,
        time=datetime.now(UTC),
        user_id=scope.user_id,
        agent_id=scope.agent_id,
        parts=parts,
        recent_errors=[RecentError(at=e.at, action=e.action, outcome=e.outcome, reason=e.reason) for e in failed_calls],
    )
    return Answer(_format_system_status(answer, await person_zone(services, scope) if with_errors else None), answer)


async def _check_parts(sources: StatusSources) -> Mapping[str, str]:
    """The state of each part. Details are only for administrators."""
    return {name: OK if state == OK else NO_ANSWER for name, state in (await sources.parts()).items()}


async def _read_recent_errors(journal: Journal, scope: PersonScope) -> Sequence[JournalEntry]:
    await journal.flush()
    since, entries = datetime.now(UTC) - RECENT, list[JournalEntry]()
    for outcome in FAILED_OUTCOMES:
        query = JournalQuery(user_id=scope.user_id, outcome=outcome, since=since, limit=MAX_ERRORS)
        entries += [entry for _, entry in await journal.read(query)]
    return sorted(entries, key=lambda entry: entry.at, reverse=True)[:MAX_ERRORS]


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
    lines = [f"- {format_time(one.at, zone)} {one.action}: {_format_reason(one)}" for one in answer.recent_errors]
    return join_lines(
        *head, "What went wrong in the last day:" if lines else "Nothing went wrong in the last day.", *lines
    )


def _format_reason(one: RecentError) -> str:
    return f"{one.outcome} ({one.reason})" if one.reason else one.outcome


STATUS_OPERATION = Operation(
    name="get_system_status",
    summary="How the desk is doing",
    request=GetSystemStatus,
    run=for_person(get_system_status),
    requires=Requires.PERSON,
    mcp=memory_tool("How the desk is doing", GET_SYSTEM_STATUS, SystemStatusAnswer),
    agents=memory_agent_tool("get_system_status", GET_SYSTEM_STATUS),
)
