"""Lanes in the database: who holds a lane's row may change what stands in it, and looks at it when it is due."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, Executable, Table, case, or_

from frontdesk.db.notify import notify
from frontdesk.db.schema import lanes
from frontdesk.db.upsert import per_dialect
from frontdesk.schedule.bell import CHANNEL, SOON_US
from frontdesk.schedule.model import Whose
from frontdesk.schedule.rows import BESIDE


def _lower(make: Any) -> Executable:  # noqa: ANN401 - the two dialects' inserts have no common type
    given = make(lanes)
    new, old = given.excluded.due_us, lanes.c.due_us
    sooner = case((or_(old.is_(None), new < old), new), else_=old)
    return given.on_conflict_do_update(index_elements=[lanes.c.name], set_={"due_us": sooner})


LOWER = per_dialect(_lower)


def lower(connection: Connection, due: Mapping[str, int | None], now_us: int) -> None:
    """Have these lanes looked at by these times; they are locked until the transaction ends, also where it is None."""
    # In order, so that two who want the same lanes do not wait for each other.
    rows = [{"name": name, "serial": not name.endswith(BESIDE), "due_us": due[name]} for name in sorted(due)]
    connection.execute(LOWER[connection.dialect.name], rows)
    soonest = min((at for at in due.values() if at is not None), default=None)
    if soonest is not None and soonest <= now_us + SOON_US:
        notify(connection, CHANNEL, str(soonest))


def owned(table: Table, whose: Whose) -> list[ColumnElement[bool]]:
    """The rows of schedules or of occurrences that belong to them."""
    found: list[ColumnElement[bool]] = []
    if whose.agent_id is not None:
        found.append(table.c.agent_id == whose.agent_id)
    if whose.user_id is not None:
        theirs = table.c.user_id == whose.user_id
        found.append(or_(theirs, table.c.user_id.is_(None)) if whose.or_nobodys else theirs)
    return found
