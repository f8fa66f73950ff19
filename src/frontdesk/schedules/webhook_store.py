"""Stores calls to webhooks: written when a delivery is settled, then claimed, and marked as sent or given up."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, func, insert, select, update

from frontdesk.db.engine import Database
from frontdesk.db.schema import forwards
from frontdesk.schedules.model import Occurrence, format_utc, from_us

WEBHOOK_WAITING = "waiting"
WEBHOOK_SENT = "sent"
WEBHOOK_DEAD = "dead"


@dataclass(frozen=True, slots=True)
class NewWebhookCall:
    """An answer to send, and its URL."""

    occurrence_id: str
    url: str
    body: str


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """A call to send now; a result counts only with the number of the newest attempt."""

    id: int
    occurrence_id: str
    url: str
    body: str
    attempt: int


def build_webhook_call(occurrence: Occurrence, url: str, answer: str | None, delivered_us: int) -> NewWebhookCall:
    """The call that forwards the answer of a delivered run."""
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


# Built once: building a statement takes longer than running it.
ADD_CALLS = insert(forwards)
# A common table expression: PostgreSQL may run a subquery for each row, and skip what it locked before.
FIRST_DUE = (
    select(forwards.c.id)
    .where(forwards.c.state == WEBHOOK_WAITING, forwards.c.available_us <= bindparam("now_us"))
    .order_by(forwards.c.available_us, forwards.c.id)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
    .cte("first_due")
)
# A claim lasts until `until`; after a crash the call is due again.
CLAIM_CALLS = (
    update(forwards)
    .where(forwards.c.id.in_(select(FIRST_DUE.c.id)), forwards.c.state == WEBHOOK_WAITING)
    .values(attempt=forwards.c.attempt + 1, available_us=bindparam("until_us"))
    .returning(forwards.c.id, forwards.c.occurrence_id, forwards.c.url, forwards.c.body, forwards.c.attempt)
)
# The result of an attempt is ignored if a newer attempt was made.
SETTLE_CALL = update(forwards).where(
    forwards.c.id == bindparam("the_id"),
    forwards.c.attempt == bindparam("the_attempt"),
    forwards.c.state == WEBHOOK_WAITING,
)
NEXT_DUE = select(func.min(forwards.c.available_us)).where(forwards.c.state == WEBHOOK_WAITING)


def add_webhook_calls(connection: Connection, new: Sequence[NewWebhookCall], now_us: int) -> None:
    """Store the calls, in the transaction that settles their deliveries."""
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
    """Stores webhook calls; each waits until it is sent or dead."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, most: int, now_us: int, until_us: int) -> Sequence[WebhookCall]:
        """Claim due calls, the oldest first; no other process gets them before `until_us`."""
        async with self._database.brief_transaction() as connection:
            rows = (await connection.execute(CLAIM_CALLS, {"most": most, "now_us": now_us, "until_us": until_us})).all()
        return [WebhookCall(row.id, row.occurrence_id, row.url, row.body, row.attempt) for row in rows]

    async def sent(self, call: WebhookCall) -> None:
        await self._settle(call, state=WEBHOOK_SENT, error=None)

    async def failed(self, call: WebhookCall, error: str, again_us: int | None) -> None:
        """Record a failure; the call is tried again at `again_us`, or never."""
        if again_us is None:
            await self._settle(call, state=WEBHOOK_DEAD, error=error)
        else:
            await self._settle(call, state=WEBHOOK_WAITING, error=error, available_us=again_us)

    async def next_us(self) -> int | None:
        """When the next call is due."""
        async with self._database.read_transaction() as connection:
            return (await connection.execute(NEXT_DUE)).scalar_one()

    async def _settle(self, call: WebhookCall, **change: object) -> None:
        async with self._database.brief_transaction() as connection:
            await connection.execute(SETTLE_CALL, {"the_id": call.id, "the_attempt": call.attempt, **change})
