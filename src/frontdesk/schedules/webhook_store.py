"""Defines and stores the calls to webhooks: written with the delivery, claimed, sent or given up."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, func, insert, select, update

from frontdesk.db.engine import Database
from frontdesk.db.schema import forwards
from frontdesk.schedules.delivery_rules import backoff_s
from frontdesk.schedules.model import Occurrence, format_utc, from_us

WEBHOOK_WAITING = "waiting"
WEBHOOK_SENT = "sent"
WEBHOOK_DEAD = "dead"


@dataclass(frozen=True, slots=True)
class NewWebhookCall:
    """What is to be sent, and where to."""

    occurrence_id: str
    url: str
    body: str


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """One that is to be tried now; the number of the attempt is also what tells a late word from the last one."""

    id: int
    occurrence_id: str
    url: str
    body: str
    attempt: int


@dataclass(frozen=True, slots=True)
class WebhookRetryPolicy:
    """How patiently an answer is forwarded: for two hours or so in all. Whoever holds one has a minute for it."""

    attempts: int = 12
    first_seconds: float = 5.0
    longest_seconds: float = 3600.0
    lease_seconds: float = 60.0
    send_seconds: float = 15.0

    def wait_s(self, attempt: int, asked: float | None, chance: float) -> float:
        """Seconds until the next attempt: no less than was asked, and never longer than the longest."""
        pause = backoff_s(attempt, self.first_seconds, self.longest_seconds, chance)
        return min(max(pause, asked or 0.0), self.longest_seconds)


class WebhookNotSent(Exception):
    """The other side did not take it; the message names its host alone, as the rest of an address may be a secret.

    `permanent`: trying again will not help. `retry_after` is in seconds, where the other side named them.
    """

    def __init__(self, error: str, *, permanent: bool = False, retry_after: float | None = None) -> None:
        super().__init__(error)
        self.permanent = permanent
        self.retry_after = retry_after


def build_webhook_call(occurrence: Occurrence, url: str, answer: str | None, delivered_us: int) -> NewWebhookCall:
    """What goes on to the webhook of a delivered occurrence."""
    body = {
        "delivery_id": occurrence.id,
        "schedule_id": occurrence.schedule_id,
        "agent_id": occurrence.agent_id,
        "number": occurrence.number,
        "intended": format_utc(from_us(occurrence.intended_us)),
        "delivered_at": format_utc(from_us(delivered_us)),
        "answer": answer,
    }
    return NewWebhookCall(occurrence.id, url, json.dumps(body))


# Made once: to build a statement takes longer than to run it.
ADD_CALLS = insert(forwards)
# A common table expression, no plain subquery: PostgreSQL may run that for each row, and skip what it locked before.
FIRST_DUE = (
    select(forwards.c.id)
    .where(forwards.c.state == WEBHOOK_WAITING, forwards.c.available_us <= bindparam("now_us"))
    .order_by(forwards.c.available_us, forwards.c.id)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
    .cte("first_due")
)
# Whoever takes one has it until then: after a crash it comes up again.
CLAIM_CALLS = (
    update(forwards)
    .where(forwards.c.id.in_(select(FIRST_DUE.c.id)), forwards.c.state == WEBHOOK_WAITING)
    .values(attempt=forwards.c.attempt + 1, available_us=bindparam("until_us"))
    .returning(forwards.c.id, forwards.c.occurrence_id, forwards.c.url, forwards.c.body, forwards.c.attempt)
)
# A word on an attempt that is not the last one any more counts for nothing.
SETTLE_CALL = update(forwards).where(
    forwards.c.id == bindparam("the_id"),
    forwards.c.attempt == bindparam("the_attempt"),
    forwards.c.state == WEBHOOK_WAITING,
)
NEXT_DUE = select(func.min(forwards.c.available_us)).where(forwards.c.state == WEBHOOK_WAITING)


def add_webhook_calls(connection: Connection, new: Sequence[NewWebhookCall], now_us: int) -> None:
    """Keep answers that are to be forwarded, in the transaction that settles their deliveries."""
    rows = [
        {
            "occurrence_id": one.occurrence_id,
            "url": one.url,
            "body": one.body,
            "attempt": 0,
            "available_us": now_us,
            "state": WEBHOOK_WAITING,
        }
        for one in new
    ]
    if rows:
        connection.execute(ADD_CALLS, rows)


class WebhookStore:
    """Each row waits until it is sent or dead."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, most: int, now_us: int, until_us: int) -> Sequence[WebhookCall]:
        """Those that are due, the oldest first; nobody else gets them before `until_us`."""
        async with self._database.brief_transaction() as connection:
            rows = (await connection.execute(CLAIM_CALLS, {"most": most, "now_us": now_us, "until_us": until_us})).all()
        return [WebhookCall(row.id, row.occurrence_id, row.url, row.body, row.attempt) for row in rows]

    async def sent(self, due: WebhookCall) -> None:
        await self._settle(due, state=WEBHOOK_SENT, error=None)

    async def failed(self, due: WebhookCall, error: str, again_us: int | None) -> None:
        """Try it again at this time, or never."""
        if again_us is None:
            await self._settle(due, state=WEBHOOK_DEAD, error=error)
        else:
            await self._settle(due, state=WEBHOOK_WAITING, error=error, available_us=again_us)

    async def next_us(self) -> int | None:
        """When the next one is due."""
        async with self._database.read_transaction() as connection:
            return (await connection.execute(NEXT_DUE)).scalar_one()

    async def _settle(self, due: WebhookCall, **change: object) -> None:
        async with self._database.brief_transaction() as connection:
            await connection.execute(SETTLE_CALL, {"the_id": due.id, "the_attempt": due.attempt, **change})
