"""Claims in the database: the lanes that are due are locked, and each gives at most one occurrence to run."""

from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, exists, literal_column, or_, select, true, update

from frontdesk.db.each import UpdateEach
from frontdesk.db.lists import one_of
from frontdesk.db.schema import UNDER_WAY, WAITS_FOR_ITS_TIME, lanes, occurrences, schedules
from frontdesk.schedule.due.again.store import UNDERWAY, Repeating, underway_of
from frontdesk.schedule.due.decide import Do, View, decide
from frontdesk.schedule.due.fire.store import Firing
from frontdesk.schedule.due.head import Head
from frontdesk.schedule.lanes.store import owned
from frontdesk.schedule.model import Occurrence, Overlap, Whose

# A lane that gives nothing to run makes room for another one.
ROUNDS = 4
DUE = (
    select(lanes.c.name, lanes.c.serial)
    .where(lanes.c.due_us.is_not(None), lanes.c.due_us <= bindparam("now"))
    .order_by(lanes.c.due_us)
    .limit(bindparam("places"))
    .with_for_update(skip_locked=True)
)
NEXT = select(lanes.c.due_us).where(lanes.c.due_us.is_not(None)).order_by(lanes.c.due_us).limit(1)
first = schedules.alias("first")
FIRST = (
    select(first.c.id)
    .where(first.c.lane == lanes.c.name, first.c.state == literal_column("'active'"), first.c.fire_us.is_not(None))
    .order_by(first.c.fire_us, first.c.id)
    .limit(1)
    .correlate(lanes)
    .scalar_subquery()
)
HEADS = (
    select(*(schedules.c[name] for name in Head._fields))
    .select_from(lanes)
    .join(schedules, schedules.c.id == FIRST)
    .where(one_of(lanes.c.name, "names"))
)
TAKEN = exists().where(occurrences.c.lane == lanes.c.name, UNDER_WAY)
FREE_HEADS = HEADS.where(lanes.c.serial == true(), ~TAKEN)
IN_LANES = UNDERWAY.where(one_of(occurrences.c.lane, "names"))
LOOK_AT = UpdateEach(lanes, ["name"], ["due_us"], {})
HOLD = update(lanes).where(one_of(lanes.c.name, "names")).values(due_us=bindparam("until"))


def claim(connection: Connection, view: View) -> list[Occurrence]:
    """Occurrences to run now, for as many places as there are."""
    claimed: list[Occurrence] = []
    due = _due(view.ask.whose)
    by = view.now_us if view.ask.due_by_us is None else min(view.now_us, view.ask.due_by_us)
    for _ in range(ROUNDS):
        places = view.ask.places - len(claimed)
        if places <= 0:
            break
        found = connection.execute(due, {"now": by, "places": places}).all()
        if not found:
            break
        begun = _from_lanes(connection, view, {row.name: row.serial for row in found})
        view.held.update(one.id for one in begun)
        claimed += begun
    return claimed


def _due(whose: Whose) -> Select[Any, Any]:
    if whose.agent_id is None and whose.user_id is None:
        return DUE
    waits = exists().where(schedules.c.lane == lanes.c.name, WAITS_FOR_ITS_TIME, *owned(schedules, whose))
    underway = exists().where(occurrences.c.lane == lanes.c.name, UNDER_WAY, *owned(occurrences, whose))
    return DUE.where(or_(waits, underway))


def _from_lanes(connection: Connection, view: View, found: dict[str, bool]) -> list[Occurrence]:
    """One thing is done in each lane, so that each is held by one run at most."""
    firing, repeating = Firing(view), Repeating(view)
    rest: list[tuple[str, int | None]] = []
    seen: set[str] = set()
    for head in map(Head._make, connection.execute(FREE_HEADS, {"names": list(found)}).all()):
        if head.fire_us <= view.now_us:
            seen.add(head.lane)
            if _theirs(view, head):
                firing.add(head)
    if len(seen) < len(found):
        left = {name: serial for name, serial in found.items() if name not in seen}
        rest = _look(connection, left, firing, repeating)
    claimed = firing.write(connection) + repeating.write(connection)
    LOOK_AT.execute(connection, rest, {})
    if held := [one.lane for one in claimed if one.overlap is not Overlap.ALLOW]:
        connection.execute(HOLD, {"names": held, "until": view.now_us + view.lease_us})
    return claimed


def _look(
    connection: Connection, found: dict[str, bool], firing: Firing, repeating: Repeating
) -> list[tuple[str, int | None]]:
    """The lanes that take more thought: something is under way there, or due later than it seemed."""
    view, names = firing.view, {"names": list(found)}
    rows: dict[str, list[Row[Any]]] = {}
    for row in connection.execute(IN_LANES, names):
        rows.setdefault(row.lane, []).append(row)
    heads = {head.lane: head for head in map(Head._make, connection.execute(HEADS, names).all())}
    rest: list[tuple[str, int | None]] = []
    for name, serial in found.items():
        here, head = rows.get(name, []), heads.get(name)
        fire_us = None if head is None else head.fire_us
        verdict = decide(view, [underway_of(row) for row in here], fire_us, serial=serial)
        if verdict.do is Do.REST:
            rest.append((name, verdict.due_us))
        elif verdict.do is Do.FIRE:
            if head is not None and _theirs(view, head):
                firing.add(head)
        else:
            repeating_row = next(row for row in here if row.id == verdict.id)
            if _theirs(view, repeating_row):
                repeating.add(verdict.do, repeating_row)
    return rest


def _theirs(view: View, row: Row[Any] | Head) -> bool:
    return view.ask.whose.covers(row.agent_id, row.user_id)
