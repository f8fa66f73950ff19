"""Occurrences that were begun before: tried again, taken over from a worker that is lost, or given up."""

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, literal_column, select, update

from frontdesk.db.each import UpdateEach
from frontdesk.db.schema import UNDER_WAY, attempts, occurrences, schedules
from frontdesk.identity.authority import Authority
from frontdesk.schedule.due.decide import Do, Underway, View
from frontdesk.schedule.due.settle.store import CANCELLED, NOW, RUNS, end_last
from frontdesk.schedule.model import Occurrence, Overlap, Standing, State

LOST = "The worker was lost"
LOST_TOO_OFTEN = "The worker was lost each time this was tried"
UNDERWAY = (
    select(
        occurrences,
        schedules.c.prompt,
        schedules.c.attempts,
        schedules.c.conversation_id,
        schedules.c.webhook,
        schedules.c.kind,
        schedules.c.overlap,
        schedules.c.state,
        schedules.c.credentials,
        schedules.c.scopes,
        schedules.c.intended_us.label("next_us"),
    )
    .join(schedules, schedules.c.id == occurrences.c.schedule_id)
    .where(UNDER_WAY)
)
RUNNING = UNDERWAY.where(RUNS)
AGAIN = UpdateEach(
    occurrences,
    ["id", "fence"],
    ["attempt", "lost", "in_doubt"],
    {
        "standing": literal_column("'running'"),
        "owner": bindparam("me"),
        "fence": occurrences.c.fence + literal_column("1"),
        "leased_until_us": bindparam("until"),
        "started_us": NOW,
        "available_us": None,
    },
)
GIVE_UP = (
    update(occurrences)
    .where(occurrences.c.id == bindparam("the_id"), occurrences.c.fence == bindparam("the_fence"))
    .values(
        standing=bindparam("standing"),
        reason=bindparam("reason"),
        ended_us=NOW,
        owner=None,
        leased_until_us=None,
        available_us=None,
    )
)
NOTE_LOST = insert(attempts)


@dataclass(slots=True)
class Repeating:
    """What is to be written for occurrences that were begun before."""

    view: View
    claimed: list[Occurrence] = field(default_factory=list[Occurrence])
    again: list[tuple[str, int, int, int, bool]] = field(default_factory=list[tuple[str, int, int, int, bool]])
    lost: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    given_up: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    over: list[Occurrence] = field(default_factory=list[Occurrence])

    def add(self, do: Do, row: Row[Any]) -> None:
        if do in (Do.DROP, Do.BURY):
            self._give_up(do, row)
            return
        taken = do is Do.TAKE_OVER
        attempt = row.attempt if taken else row.attempt + 1
        in_doubt = bool(row.in_doubt or taken)
        self.again.append((row.id, row.fence, attempt, row.lost + taken, in_doubt))
        if taken:
            self.lost.append(_lost(row, self.view.now_us))
        begun = {"attempt": attempt, "in_doubt": in_doubt, "started_us": self.view.now_us}
        self.claimed.append(occurrence_of(row, fence=row.fence + 1, **begun))

    def write(self, connection: Connection) -> list[Occurrence]:
        now_us = self.view.now_us
        common = {"me": self.view.owner, "until": now_us + self.view.lease_us, "now": now_us}
        AGAIN.execute(connection, self.again, common)
        if self.lost:
            connection.execute(NOTE_LOST, self.lost)
        if self.given_up:
            connection.execute(GIVE_UP, self.given_up)
        end_last(connection, self.over, now_us)
        return self.claimed

    def _give_up(self, do: Do, row: Row[Any]) -> None:
        standing, reason = (Standing.CANCELLED, CANCELLED) if do is Do.DROP else (Standing.DEAD, LOST_TOO_OFTEN)
        place = {"the_id": row.id, "the_fence": row.fence, "now": self.view.now_us}
        self.given_up.append({**place, "standing": standing.value, "reason": reason})
        run = occurrence_of(row)
        if run.last:
            self.over.append(run)


def underway_of(row: Row[Any]) -> Underway:
    running = row.standing == Standing.RUNNING
    return Underway(
        row.id,
        Standing.RUNNING if running else Standing.WAITING,
        row.intended_us,
        row.owner,
        row.started_us or 0,
        (row.leased_until_us if running else row.available_us) or 0,
        row.lost,
        row.state == State.CANCELLED,
    )


def occurrence_of(row: Row[Any], **changed: Any) -> Occurrence:  # noqa: ANN401 - fields of `Occurrence`
    """An occurrence as it is stored, but for what was just changed."""
    now: dict[str, Any] = {
        "attempt": row.attempt,
        "fence": row.fence,
        "in_doubt": row.in_doubt,
        "started_us": row.started_us or 0,
        **changed,
    }
    # A schedule keeps its last time while that is run.
    next_us = None if row.next_us == row.intended_us else row.next_us
    return Occurrence(
        id=row.id,
        schedule_id=row.schedule_id,
        agent_id=row.agent_id,
        user_id=row.user_id,
        prompt=row.prompt,
        intended_us=row.intended_us,
        number=row.number,
        attempts=row.attempts,
        conversation_id=row.conversation_id,
        webhook=row.webhook,
        last=next_us is None,
        manual=row.manual,
        recurring=row.kind != "once",
        overlap=Overlap(row.overlap),
        next_us=next_us,
        due_us=row.available_us or row.intended_us,
        created_us=row.created_us,
        lane=row.lane,
        authority=Authority.read(row.credentials, row.scopes),
        **now,
    )


def _lost(row: Row[Any], now_us: int) -> dict[str, Any]:
    told = {"number": row.attempt, "started_us": row.started_us, "ended_us": now_us, "error": LOST}
    return {"occurrence_id": row.id, **told}
