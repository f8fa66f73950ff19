"""Decides what becomes of each row of a PromptYoSelf database: a schedule of ours, or a reason why not."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from frontdesk.errors import Invalid
from frontdesk.schedule.importing.model import TABLES, Row
from frontdesk.schedule.limits import Limits
from frontdesk.schedule.model import SECOND, NewSchedule, Trigger, TriggerKind, moment, us
from frontdesk.schedule.numbers import MOST
from frontdesk.schedule.triggers import interval
from frontdesk.schedule.triggers.next import next_after
from frontdesk.schedule.triggers.parse import cron_trigger
from frontdesk.schedule.words import times
from frontdesk.settings import AGENT_ID, agent_id_in

# Their executor may have been down for as long as moving house takes; older ones have lost their point.
STILL_DUE_US = 24 * 3600 * SECOND
WAITING = frozenset({"", "active", "pending", "scheduled"})


@dataclass(frozen=True, slots=True)
class Taken:
    """A schedule to be made, when it is next meant to fire, and how often it has run over there."""

    new: NewSchedule
    intended_us: int
    fired: int = 0


@dataclass(slots=True)
class Plan:
    """What is to be made, and what is left out, by row, and why."""

    taken: list[Taken] = field(default_factory=list[Taken])
    left_out: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


def plan(rows: Sequence[Row], limits: Limits, now_us: int) -> Plan:
    """Row by row; what both tables have is taken once."""
    made = Plan()
    newer = {row.same for row in rows if row.table == TABLES[0]}
    for row in rows:
        try:
            if row.table != TABLES[0] and row.same in newer:
                raise Invalid(f"it is in {TABLES[0]} too")
            made.taken.append(_taken(row, limits, now_us))
        except Invalid as error:
            made.left_out.append((row.name, str(error)))
    return made


def _taken(row: Row, limits: Limits, now_us: int) -> Taken:
    _check_alive(row)
    agent_id, prompt = _agent(row), _prompt(row, limits)
    most, fired = _repetitions(row)
    trigger, intended = _trigger(row, now_us)
    limits.check_pace(trigger, None if most is None else most - fired)
    return Taken(NewSchedule(agent_id, prompt, trigger, max_repetitions=most, made_by=row.mark), intended, fired)


def _check_alive(row: Row) -> None:
    status = str(row.status or "").strip().lower()
    if status not in WAITING:
        raise Invalid(f"its status is '{status[:40]}'")
    if row.active is not None and str(row.active).strip().lower() in ("0", "false", ""):
        raise Invalid("it is not active any more")


def _agent(row: Row) -> str:
    named = agent_id_in(row.agent_id) if isinstance(row.agent_id, str) else None
    if named is None or not AGENT_ID.fullmatch(named):
        raise Invalid(f"'{str(row.agent_id)[:128]}' is not an agent id")
    return named


def _prompt(row: Row, limits: Limits) -> str:
    if not isinstance(row.prompt, str) or not row.prompt.strip():
        raise Invalid("it has no text")
    limits.check_prompt(row.prompt)
    return row.prompt


def _repetitions(row: Row) -> tuple[int | None, int]:
    """How often it may run in all, and how often it has."""
    most = _whole(row.max_repetitions, "max_repetitions")
    count = max(0, _whole(row.repetition_count, "repetition_count") or 0)
    if most is not None and not 1 <= most <= MOST:
        raise Invalid(f"its max_repetitions is {most}")
    if count > MOST or (most is not None and count >= most):
        raise Invalid(f"it has run {count} times of {most or MOST}")
    return most, count


def _whole(value: object, name: str) -> int | None:
    try:
        return None if value is None else int(str(value))
    except ValueError as error:
        raise Invalid(f"its {name} is '{str(value)[:40]}', which is no number") from error


def _trigger(row: Row, now_us: int) -> tuple[Trigger, int]:
    kind, value = str(row.kind or "").strip().lower(), str(row.value if row.value is not None else "").strip()
    if kind == TriggerKind.ONCE:
        return _once(row, value, now_us)
    if kind == TriggerKind.CRON:
        trigger = cron_trigger(value)
    elif kind == TriggerKind.INTERVAL:
        length = interval.seconds(value)
        start = _time(row.next_run)
        trigger = Trigger(TriggerKind.INTERVAL, interval.normal(length), start_us=start or now_us + length * SECOND)
    else:
        raise Invalid(f"its kind is '{kind[:40]}', and there are once, cron and interval")
    intended = next_after(trigger, now_us)
    if intended is None:
        raise Invalid("it would never run again")
    return trigger, intended


def _once(row: Row, value: str, now_us: int) -> tuple[Trigger, int]:
    # What its user wrote holds the offset, which the time beside it was worked out without.
    at = _exact(value) or _time(row.next_run) or _time(value)
    if at is None:
        raise Invalid(f"'{value[:60]}' is no time")
    if at < now_us - STILL_DUE_US:
        raise Invalid(f"it was due at {moment(at).isoformat()}, and never ran; make it anew if it still matters")
    return Trigger(TriggerKind.ONCE, moment(at).isoformat()), at


def _exact(text: str) -> int | None:
    """A time with an offset."""
    try:
        return us(times.parse(text))
    except Invalid:
        return None


def _time(value: object) -> int | None:
    """A time as they store it: UTC where it does not say."""
    if value is None or not str(value).strip():
        return None
    try:
        return us(times.parse(str(value), "UTC"))
    except Invalid as error:
        raise Invalid(f"'{str(value)[:60]}' is no time") from error
