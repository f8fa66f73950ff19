"""Chooses which of many schedules are due at once and their texts: the same for Frontdesk and for its peers."""

import time
from dataclasses import dataclass

PROMPT = "Look through what came in since the last time, and tell Ada in two sentences what she should know about it."
PER_AGENT = 10
DAY_US = 86_400_000_000
# None of these falls due during a measurement.
NEXT_DAYS, SPREAD_DAYS = 30, 300


@dataclass(frozen=True, slots=True)
class DueSet:
    """Some of the schedules, evenly spread, `apart_us` after one another; each has another agent."""

    schedules: int
    due: int
    apart_us: int = 1

    def numbers(self) -> range:
        return range(0, self.schedules, self.schedules // self.due)[: self.due]

    def times(self, first_us: int) -> dict[int, int]:
        """When each is due, if the first is due at this time."""
        return {number: first_us + index * self.apart_us for index, number in enumerate(self.numbers())}


def agent_of(number: int) -> str:
    return f"agent-{number // PER_AGENT}"


def waiting(schedules: int) -> str:
    """SQL for both databases: the number of every schedule, and its due time if no test changes it.

    They are in no order, and a database generates them many times faster than it takes them from outside.
    """
    first, spread = now_us() + NEXT_DAYS * DAY_US, SPREAD_DAYS * DAY_US
    return f"""
    WITH RECURSIVE series (number) AS (
        SELECT CAST(0 AS bigint) UNION ALL SELECT number + 1 FROM series WHERE number + 1 < {schedules}
    ) SELECT number, {first} + number * 7919000003 % {spread} AS at_us FROM series
    """


def now_us() -> int:
    return time.time_ns() // 1000
