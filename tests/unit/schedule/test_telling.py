"""How loud the log is about prompts that ended."""

import pytest
from structlog.testing import capture_logs

from frontdesk.schedules.delivery_rules import SettledRun
from frontdesk.schedules.model import Occurrence, RunStatus
from frontdesk.schedules.worker import log_ended


def ended(standing: RunStatus, times: int) -> list[SettledRun]:
    occurrence = Occurrence("run-1-1", 1, "ada", None, "Say hello", 0, 1, 1, 1)
    return [SettledRun(occurrence, standing, 1000, error="no answer")] * times


@pytest.mark.parametrize("times", [1, 20])
@pytest.mark.parametrize(
    ("standing", "level"),
    [(RunStatus.DELIVERED, "info"), (RunStatus.WAITING, "warning"), (RunStatus.DEAD, "error")],
)
def test_many_at_once_are_told_as_loudly_as_one(times: int, standing: RunStatus, level: str) -> None:
    with capture_logs() as lines:
        log_ended(ended(standing, times))
    assert [line["log_level"] for line in lines] == [level]


def test_the_worst_of_many_decides_and_each_kind_is_counted() -> None:
    with capture_logs() as lines:
        log_ended([*ended(RunStatus.DELIVERED, 8), *ended(RunStatus.WAITING, 3), *ended(RunStatus.DEAD, 1)])
    told = {"event": "prompts_ended", "delivered": 8, "failed": 3, "dead": 1, "log_level": "error"}
    assert lines == [told]
