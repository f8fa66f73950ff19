"""How loud the log is about prompts that ended."""

import pytest
from structlog.testing import capture_logs

from frontdesk.schedule.due.model import Settled
from frontdesk.schedule.model import Occurrence, Standing
from frontdesk.schedule.telling import tell_of


def ended(standing: Standing, times: int) -> list[Settled]:
    occurrence = Occurrence("run-1-1", 1, "ada", None, "Say hello", 0, 1, 1, 1)
    return [Settled(occurrence, standing, 1000, error="no answer")] * times


@pytest.mark.parametrize("times", [1, 20])
@pytest.mark.parametrize(
    ("standing", "level"),
    [(Standing.DELIVERED, "info"), (Standing.WAITING, "warning"), (Standing.DEAD, "error")],
)
def test_many_at_once_are_told_as_loudly_as_one(times: int, standing: Standing, level: str) -> None:
    with capture_logs() as lines:
        tell_of(ended(standing, times))
    assert [line["log_level"] for line in lines] == [level]


def test_the_worst_of_many_decides_and_each_kind_is_counted() -> None:
    with capture_logs() as lines:
        tell_of([*ended(Standing.DELIVERED, 8), *ended(Standing.WAITING, 3), *ended(Standing.DEAD, 1)])
    told = {"event": "prompts_ended", "delivered": 8, "failed": 3, "dead": 1, "log_level": "error"}
    assert lines == [told]
