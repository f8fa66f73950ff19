"""The tool that says how the desk is doing, and what went wrong for this person lately."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from frontdesk import __version__
from frontdesk.journal.model import Entry, Outcome
from frontdesk.journal.service import Journal
from frontdesk.journal.store import Query
from frontdesk.memory.asked.status import SystemStatus
from frontdesk.memory.scope import Scope
from frontdesk.memory.service import MemoryRoom
from frontdesk.memory.tooling.clock import clock
from frontdesk.memory.tooling.telling.words import lines, when
from frontdesk.memory.tooling.tool import Answer, MemoryTool, Told

NAME = "get_system_status"
TITLE = "How the desk is doing"
STATUS = (
    "Whether the desk works, which version it is, and which of the person's own calls went wrong in the last day. "
    "Use it when other tools fail in a way that you cannot explain."
)
LATELY = timedelta(days=1)
MOST = 10
OK, SILENT = "ok", "does not answer"
WRONG = (Outcome.FAILED, Outcome.REFUSED, Outcome.DENIED, Outcome.LIMITED)


@dataclass(frozen=True, slots=True)
class House:
    """What there is to say about the desk as a whole: how its parts are, and what was done in it."""

    parts: Callable[[], Awaitable[Mapping[str, str]]]
    journal: Journal


class WentWrong(Answer):
    """A call that did not end well; what was said in it is never kept."""

    at: datetime
    action: str
    outcome: Outcome
    reason: str | None


class SystemStatusAnswer(Answer):
    """`parts` is empty where nothing was asked of them; the errors are the person's own, the latest first."""

    status: str
    version: str
    time: datetime
    user_id: str
    agent_id: str | None
    parts: Mapping[str, str]
    recent_errors: Sequence[WentWrong]


async def status(house: House, room: MemoryRoom, scope: Scope, given: SystemStatus) -> Told:
    parts: Mapping[str, str] = await _parts(house) if given.check_connectivity else {}
    healthy = all(state == OK for state in parts.values())
    # What went wrong is in the database, which is not to be asked while it does not answer.
    asked = given.include_recent_errors and healthy
    wrong = await _wrong(house.journal, scope) if asked else ()
    answer = SystemStatusAnswer(
        status="healthy" if healthy else "unhealthy",
        version=__version__,
        time=datetime.now(UTC),
        user_id=scope.user_id,
        agent_id=scope.agent_id,
        parts=parts,
        recent_errors=[WentWrong(at=e.at, action=e.action, outcome=e.outcome, reason=e.reason) for e in wrong],
    )
    return Told(_told(answer, await clock(room, scope) if asked else None), answer)


def status_tool(house: House) -> MemoryTool:
    return MemoryTool(NAME, TITLE, STATUS, SystemStatus, SystemStatusAnswer, partial(status, house))


async def _parts(house: House) -> Mapping[str, str]:
    """What exactly is wrong with a part is for whoever runs the house."""
    return {name: OK if state == OK else SILENT for name, state in (await house.parts()).items()}


async def _wrong(journal: Journal, scope: Scope) -> Sequence[Entry]:
    await journal.flush()
    since, found = datetime.now(UTC) - LATELY, list[Entry]()
    for outcome in WRONG:
        query = Query(user_id=scope.user_id, outcome=outcome, since=since, limit=MOST)
        found += [entry for _, entry in await journal.read(query)]
    return sorted(found, key=lambda entry: entry.at, reverse=True)[:MOST]


def _told(answer: SystemStatusAnswer, zone: ZoneInfo | None) -> str:
    """With what went wrong, on this clock, if that was asked for."""
    agent = f", acting through the agent {answer.agent_id}" if answer.agent_id else ""
    head = (
        f"Frontdesk {answer.version} is {answer.status}.",
        ", ".join(f"{name}: {state}" for name, state in answer.parts.items()),
        f"You are {answer.user_id}{agent}.",
    )
    if zone is None:
        return lines(*head)
    wrong = [f"- {when(one.at, zone)} {one.action}: {_why(one)}" for one in answer.recent_errors]
    return lines(*head, "What went wrong in the last day:" if wrong else "Nothing went wrong in the last day.", *wrong)


def _why(one: WentWrong) -> str:
    return f"{one.outcome} ({one.reason})" if one.reason else one.outcome
