"""Stores which Letta agent serves which person, and which process is making a copy now."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, Delete, delete, select, update
from sqlalchemy.engine import RowMapping

from frontdesk.db.engine import Database, Transaction
from frontdesk.db.schema import attempts, forwards, held_tools, letta_agents, occurrences, schedules, tool_turns, turns
from frontdesk.db.statements import lease_time, per_dialect

# Letta makes an agent in about a second; another process waits no longer than this.
CLAIM_TIME = timedelta(seconds=60)


class AssignmentKind(StrEnum):
    """Whether an agent serves one person, serves everybody, or is only a template."""

    PERSON = "person"
    SHARED = "shared"
    TEMPLATE = "template"


@dataclass(frozen=True, slots=True)
class AgentAssignment:
    """The record of an agent; `template_id` is its template. Without an id, the agent is still being made."""

    agent_id: str | None
    kind: AssignmentKind
    user_id: str | None = None
    template_id: str | None = None
    remark: str = ""

    @property
    def description(self) -> str:
        """A description for the operator."""
        return f"for {self.user_id}" if self.kind is AssignmentKind.PERSON else str(self.kind)


@dataclass(frozen=True, slots=True)
class CopyClaim:
    """The exclusive right to make a person's agent."""

    template_id: str
    user_id: str
    token: str


SELECT_ASSIGNMENTS = select(letta_agents).where(letta_agents.c.agent_id.is_not(None))
INSERT_ASSIGNMENT = per_dialect(lambda insert: insert(letta_agents).on_conflict_do_nothing(index_elements=["agent_id"]))
INSERT_CLAIM = per_dialect(
    lambda insert: insert(letta_agents).on_conflict_do_nothing(index_elements=["template_id", "user_id"])
)


def _upsert_assignment(insert: Callable[..., Any]) -> Any:  # noqa: ANN401 - the dialects' inserts have no common type
    put = insert(letta_agents)
    said = ("kind", "user_id", "template_id", "remark", "noted_at")
    return put.on_conflict_do_update(index_elements=["agent_id"], set_={name: put.excluded[name] for name in said})


UPSERT_ASSIGNMENT = per_dialect(_upsert_assignment)


class AgentAssignmentStore:
    """Has one row for each agent that is a person's, shared or a template; other agents have no row."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, agent_id: str) -> AgentAssignment | None:
        async with self._database.brief_transaction() as connection:
            return await _find_assignment(connection, agent_id)

    async def listed(self) -> Sequence[AgentAssignment]:
        """All assignments, the oldest first."""
        return await self._where(letta_agents.c.agent_id.is_not(None))

    async def of_person(self, user_id: str) -> Sequence[AgentAssignment]:
        """The agents that serve only this person; one without an id was still being made."""
        return await self._where(letta_agents.c.user_id == user_id)

    async def made_from(self, template_id: str, user_id: str) -> str | None:
        """The agent that a person has from a template, once it is made."""
        query = select(letta_agents.c.agent_id).where(*_is_copy(template_id, user_id))
        async with self._database.brief_transaction() as connection:
            return (await connection.execute(query)).scalar_one_or_none()

    async def shared_with(self, user_id: str) -> Sequence[str]:
        """The shared agents with which a person has talked."""
        query = select(turns.c.agent_id).where(turns.c.user_id == user_id)
        found = await self._where(letta_agents.c.kind == AssignmentKind.SHARED, letta_agents.c.agent_id.in_(query))
        return [one.agent_id for one in found if one.agent_id is not None]

    async def speakers(self, agent_id: str) -> Sequence[str]:
        """The people who have talked with an agent, according to its stored turns."""
        query = select(turns.c.user_id).where(turns.c.agent_id == agent_id, turns.c.user_id.is_not(None)).distinct()
        async with self._database.read_transaction() as connection:
            return sorted((await connection.execute(query)).scalars())

    async def mark(self, agent_id: str, kind: AssignmentKind, user_id: str | None = None, remark: str = "") -> None:
        """Record whom an agent serves; replaces an earlier record."""
        async with self._database.brief_transaction() as connection:
            row = _row(await lease_time(connection), agent_id=agent_id, kind=kind, user_id=user_id, remark=remark)
            await connection.execute(UPSERT_ASSIGNMENT[connection.dialect.name], row)

    async def unmark(self, agent_id: str) -> None:
        """Delete the record of an agent."""
        async with self._database.brief_transaction() as connection:
            await connection.execute(delete(letta_agents).where(letta_agents.c.agent_id == agent_id))

    async def claim(self, claim: CopyClaim) -> str | bool:
        """The id of a person's agent if it exists; otherwise whether this claim may make it now."""
        async with self._database.brief_transaction() as connection:
            now = await lease_time(connection)
            row = _row(now, kind=AssignmentKind.PERSON, user_id=claim.user_id, template_id=claim.template_id)
            row |= {"claim": claim.token, "claimed_until": now + CLAIM_TIME}
            await connection.execute(INSERT_CLAIM[connection.dialect.name], row)
            mine = _is_copy(claim.template_id, claim.user_id)
            found = (await connection.execute(select(letta_agents).where(*mine).with_for_update())).mappings().one()
            if found["agent_id"] is not None:
                return found["agent_id"]
            if found["claim"] != claim.token and found["claimed_until"] > now:
                return False
            change = update(letta_agents).where(*mine).values(claim=claim.token, claimed_until=now + CLAIM_TIME)
            await connection.execute(change)
            return True

    async def made(self, claim: CopyClaim, agent_id: str) -> bool:
        """Record that the person's agent was made; returns False if another process has taken the claim over."""
        change = (
            update(letta_agents).where(*_is_claimed(claim)).values(agent_id=agent_id, claim=None, claimed_until=None)
        )
        async with self._database.brief_transaction() as connection:
            return (await connection.execute(change)).rowcount > 0

    async def give_up(self, claim: CopyClaim) -> None:
        """Release the claim, so that the next caller need not wait for it."""
        async with self._database.brief_transaction() as connection:
            now = await lease_time(connection)
            await connection.execute(update(letta_agents).where(*_is_claimed(claim)).values(claimed_until=now))

    async def forget_unmade(self, user_id: str) -> None:
        """Delete the records of this person's agents that were never completed."""
        unmade = delete(letta_agents).where(letta_agents.c.user_id == user_id, letta_agents.c.agent_id.is_(None))
        async with self._database.brief_transaction() as connection:
            await connection.execute(unmade)

    async def forget(self, agent_id: str) -> int:
        """Delete all records of a person's agent that Letta has deleted; returns the number of rows."""

        def work(connection: Connection) -> int:
            return sum(connection.execute(one).rowcount for one in _delete_statements(agent_id))

        return await self._database.write(work, small=False)

    async def _where(self, *wanted: ColumnElement[bool]) -> Sequence[AgentAssignment]:
        async with self._database.read_transaction() as connection:
            rows = await connection.execute(select(letta_agents).where(*wanted).order_by(letta_agents.c.id))
            return [_assignment(row) for row in rows.mappings()]

    async def known(self, ids: Collection[str]) -> Mapping[str, AgentAssignment]:
        """The records of these agents."""
        found = await self._where(letta_agents.c.agent_id.in_(ids)) if ids else ()
        return {one.agent_id: one for one in found if one.agent_id is not None}


async def assign_if_unknown(connection: Transaction, agent_id: str, user_id: str) -> AgentAssignment:
    """Assign an agent without a record to this person, within a transaction; returns the resulting record."""
    if (found := await _find_assignment(connection, agent_id)) is not None:
        return found
    row = _row(await lease_time(connection), agent_id=agent_id, kind=AssignmentKind.PERSON, user_id=user_id)
    await connection.execute(INSERT_ASSIGNMENT[connection.dialect.name], row)
    return await _find_assignment(connection, agent_id) or AgentAssignment(agent_id, AssignmentKind.PERSON, user_id)


async def _find_assignment(connection: Transaction, agent_id: str) -> AgentAssignment | None:
    row = (
        (await connection.execute(SELECT_ASSIGNMENTS.where(letta_agents.c.agent_id == agent_id)))
        .mappings()
        .one_or_none()
    )
    return None if row is None else _assignment(row)


def _is_copy(template_id: str, user_id: str) -> tuple[ColumnElement[bool], ...]:
    return letta_agents.c.template_id == template_id, letta_agents.c.user_id == user_id


def _is_claimed(claim: CopyClaim) -> tuple[ColumnElement[bool], ...]:
    still = letta_agents.c.agent_id.is_(None)
    return *_is_copy(claim.template_id, claim.user_id), letta_agents.c.claim == claim.token, still


def _delete_statements(agent_id: str) -> Sequence[Delete]:
    """Rows that depend on another row are deleted before it."""
    runs = select(occurrences.c.id).where(occurrences.c.agent_id == agent_id)
    return (
        delete(forwards).where(forwards.c.occurrence_id.in_(runs)),
        delete(attempts).where(attempts.c.occurrence_id.in_(runs)),
        delete(occurrences).where(occurrences.c.agent_id == agent_id),
        delete(schedules).where(schedules.c.agent_id == agent_id),
        delete(turns).where(turns.c.agent_id == agent_id),
        delete(held_tools).where(held_tools.c.agent_id == agent_id),
        delete(tool_turns).where(tool_turns.c.agent_id == agent_id),
        delete(letta_agents).where(letta_agents.c.agent_id == agent_id),
    )


def _row(now: datetime, *, kind: AssignmentKind, **columns: str | None) -> dict[str, Any]:
    empty = {"agent_id": None, "user_id": None, "template_id": None, "claim": None, "claimed_until": None}
    return {**empty, "remark": "", "noted_at": now, "kind": str(kind), **columns}


def _assignment(row: RowMapping) -> AgentAssignment:
    return AgentAssignment(
        row["agent_id"], AssignmentKind(row["kind"]), row["user_id"], row["template_id"], row["remark"]
    )
