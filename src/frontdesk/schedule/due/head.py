"""A schedule that may fire, as it is read."""

from typing import NamedTuple


class Head(NamedTuple):
    """The first of a lane. A tuple, since thousands a second are made straight from rows."""

    id: int
    lane: str
    agent_id: str
    user_id: str | None
    prompt: str
    kind: str
    value: str
    zone: str
    start_us: int | None
    end_us: int | None
    jitter_s: int
    max_repetitions: int | None
    overlap: str
    misfire: str
    max_late_s: int | None
    attempts: int
    webhook: str | None
    conversation_id: str | None
    intended_us: int
    fire_us: int
    fired: int
    last_ended_us: int | None
    credentials: str | None
    scopes: str | None
