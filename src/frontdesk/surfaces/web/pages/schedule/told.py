"""Schedules and runs as their pages write them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from frontdesk.schedule.asked import Preview, Rule
from frontdesk.schedule.forwards.model import DEAD
from frontdesk.schedule.model import Attempt, Past, Schedule, Standing, State
from frontdesk.schedule.triggers.plain import plain
from frontdesk.surfaces.web.pages.schedule.agents import Roster
from frontdesk.surfaces.web.pages.schedule.clocks import Hour, hour, maybe

OVER = frozenset({State.CANCELLED, State.ENDED})


@dataclass(frozen=True, slots=True)
class Row:
    """A schedule in a list, and at the head of its own page."""

    id: int
    agent_id: str
    agent: str
    prompt: str
    rule: str
    plain: str
    words: str | None
    zone: str
    state: State
    next: Hour | None
    last: Hour | None
    fired: int
    most: int | None

    @property
    def is_over(self) -> bool:
        return self.state in OVER

    @classmethod
    def of(cls, schedule: Schedule, agents: Roster) -> "Row":
        what = schedule.what
        trigger = what.trigger
        rule = Rule.of(trigger, None).facts["rule"] or trigger.value
        return cls(
            id=schedule.id,
            agent_id=what.agent_id,
            agent=agents.name_of(what.agent_id),
            prompt=what.prompt,
            rule=rule,
            plain=plain(rule),
            words=what.words,
            zone=trigger.zone,
            state=schedule.state,
            next=maybe(schedule.fire_us, trigger.zone) if schedule.state is State.ACTIVE else None,
            last=maybe(schedule.last_us, trigger.zone),
            fired=schedule.fired,
            most=what.max_repetitions,
        )


@dataclass(frozen=True, slots=True)
class Try:
    """One attempt at a run, and why it came to nothing where it did."""

    number: int
    at: datetime
    took_us: int | None
    error: str

    @classmethod
    def of(cls, attempt: Attempt) -> "Try":
        took = None if attempt.ended_us is None else attempt.ended_us - attempt.started_us
        return cls(attempt.number, hour(attempt.started_us).at, took, attempt.error or "")


@dataclass(frozen=True, slots=True)
class RunRow:
    """What became of one fire."""

    id: str
    schedule_id: int
    agent_id: str
    agent: str
    due: Hour
    ended: Hour | None
    standing: Standing
    attempt: int
    took_us: int | None
    reason: str
    answer: str
    manual: bool
    tries: Sequence[Try]
    forwarded: str

    @property
    def is_dead(self) -> bool:
        return self.standing is Standing.DEAD

    @classmethod
    def of(cls, past: Past, agents: Roster, zone: str = "UTC") -> "RunRow":
        took = None if past.started_us is None or past.ended_us is None else past.ended_us - past.started_us
        return cls(
            id=past.id,
            schedule_id=past.schedule_id,
            agent_id=past.agent_id,
            agent=agents.name_of(past.agent_id),
            due=hour(past.intended_us, zone),
            ended=maybe(past.ended_us, zone),
            standing=past.standing,
            attempt=past.attempt,
            took_us=took,
            reason=past.reason or "",
            answer=past.answer or "",
            manual=past.manual,
            tries=[Try.of(one) for one in past.earlier],
            forwarded=_forwarded(past),
        )


def host_of(webhook: str | None) -> str:
    """Where answers go; the rest of the address may hold a secret."""
    return "" if webhook is None else urlsplit(webhook).hostname or ""


def sentence(schedule: Schedule) -> str:
    """When it fires, in plain words, and when next."""
    trigger = schedule.what.trigger
    words, at = plain(Rule.of(trigger, None).facts["rule"] or ""), maybe(schedule.intended_us, trigger.zone)
    return f"{words}; it does not fire again" if at is None else f"{words}, next {at.local or at.utc}"


def times_of(preview: Preview) -> list[Hour]:
    return [hour(at, preview.zone) for at in preview.times]


def _forwarded(past: Past) -> str:
    """What became of the answer on its way to the webhook."""
    found = past.forwarded
    if found is None:
        return ""
    said = f"answer {'given up' if found.state == DEAD else found.state} after {found.attempt} tries"
    return f"{said}: {found.error}" if found.error else said
