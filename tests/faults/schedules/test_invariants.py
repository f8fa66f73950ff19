"""Tests the reader of histories: it accepts a good history, and finds each deliberate mistake."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from frontdesk.schedules.model import ScheduleDefinition
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.postgres import Postgres
from tests.support.schedules.history import Arrival, Cancelled, Diary, History, Lost, Row
from tests.support.schedules.installation import SECOND, Installation, every, once, open_installation
from tests.support.schedules.invariants import violations
from tests.support.schedules.processes import Nursery
from tests.support.schedules.receiver import How, Manner

# The reader of histories accepts a good history and finds every kind of mistake


START = 1_800_000_000 * SECOND
MADE: dict[int, ScheduleDefinition] = {1: every("ann", "1s", START, times=3), 2: once("ann", START + 1)}
TIMES = [(1, START), (2, START + 1), (1, START + SECOND), (1, START + 2 * SECOND)]
Break = Callable[[History], History]


def _row(schedule: int, at: int, number: int) -> Row:
    name = f"run-{schedule}-{at}"
    told = {"standing": "delivered", "attempt": 1, "fence": 1, "manual": False, "reason": None}
    return {
        "id": name,
        "schedule_id": schedule,
        "agent_id": "ann",
        "intended_us": at,
        "created_us": at,
        "started_us": at,
    } | (told | {"ended_us": at + 9, "answer": f"{name}/{number}"})


def _arrival(schedule: int, at: int, number: int) -> Arrival:
    began = number * 100
    return Arrival(
        number, f"run-{schedule}-{at}", schedule, "ann", at, 1, 1, 77, False, at + 5, began, began + 50, "well"
    )


def _good() -> History:
    return History(
        now_us=START + 10 * SECOND,
        schedules=[{"id": 1, "state": "ended"}, {"id": 2, "state": "ended"}],
        occurrences=[_row(*time, number) for number, time in enumerate(TIMES)],
        attempts=[],
        journal=[{"request_id": f"run-{schedule}-{at}", "outcome": "ok"} for schedule, at in TIMES],
        arrivals=[_arrival(*time, number) for number, time in enumerate(TIMES)],
        diary=Diary(),
    )


def _with_row(index: int, **changes: object) -> Break:
    def broken(history: History) -> History:
        rows = [dict(row) for row in history.occurrences]
        rows[index] |= changes
        return replace(history, occurrences=rows)

    return broken


def _with_context(index: int, **changes: object) -> Break:
    def broken(history: History) -> History:
        arrivals = list(history.arrivals)
        arrivals[index] = replace(arrivals[index], **changes)
        return replace(history, arrivals=arrivals)

    return broken


def _sent_again(history: History) -> History:
    """The first delivery succeeded, and was sent again under another fence; the row knows only of the second."""
    again = replace(history.arrivals[0], number=9, fence=2, began_ns=60, ended_ns=70)
    first, *others = history.arrivals
    return _with_row(0, fence=2, answer=f"{again.id}/9")(replace(history, arrivals=[first, again, *others]))


def _lost(history: History) -> History:
    return replace(_sent_again(history), diary=Diary(lost=[Lost(77, 55)]))


def _swapped(history: History) -> History:
    first, second, *others = history.arrivals
    swapped = [replace(second, began_ns=0, ended_ns=50), replace(first, began_ns=100, ended_ns=150)]
    return replace(history, arrivals=[*swapped, *others])


def _returned(history: History) -> History:
    """The first delivery is tried again after the second."""
    first, second, *others = history.arrivals
    again = replace(first, number=9, attempt=2, fence=2, began_ns=160, ended_ns=170)
    refused = replace(first, how="error")
    return _with_row(0, fence=2, answer=f"{again.id}/9")(replace(history, arrivals=[refused, second, again, *others]))


def _cancelled(history: History) -> History:
    return replace(history, diary=Diary(cancelled=[Cancelled(1, START + SECOND, frozenset())]))


def _without_last(history: History) -> History:
    return replace(history, occurrences=history.occurrences[:-1], arrivals=history.arrivals[:-1])


def _without_second(history: History) -> History:
    return replace(history, occurrences=history.occurrences[::2], arrivals=history.arrivals[::2])


def _doubled(history: History) -> History:
    return replace(history, occurrences=[*history.occurrences, history.occurrences[0] | {"id": "another"}])


def _once_more(history: History) -> History:
    at = START + 3 * SECOND
    return replace(
        history, occurrences=[*history.occurrences, _row(1, at, 4)], arrivals=[*history.arrivals, _arrival(1, at, 4)]
    )


def _not_told(history: History) -> History:
    return replace(history, journal=history.journal[1:])


def _told_twice(history: History) -> History:
    return replace(history, journal=[*history.journal, history.journal[0]])


def test_a_good_history_has_nothing_wrong_with_it() -> None:
    assert violations(_good(), MADE) == []
    assert violations(_lost(_good()), MADE) == [], "its worker was lost before it could tell"


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        (_with_row(0, standing="running"), "unsettled"),
        (_with_row(0, standing="cancelled"), "unsettled"),
        (_with_row(0, standing="dead"), "unsettled"),
        (_with_row(0, standing="dead", reason="no"), "told_wrong"),
        (_with_row(0, intended_us=START + 1), "unaccounted"),
        (_without_last, "unaccounted"),
        (_without_second, "unaccounted"),
        (_doubled, "repeated"),
        (_once_more, "repeated"),
        (_with_row(0, answer="something else"), "told_wrong"),
        (_with_row(0, fence=2), "told_wrong"),
        (_not_told, "unrecorded"),
        (_told_twice, "unrecorded"),
        (_with_context(0, agent="bob"), "told_wrong"),
        (_with_context(0, id="run-9-9"), "told_wrong"),
        (_with_context(0, began_us=START - 1), "early"),
        (_cancelled, "late_start"),
        (_sent_again, "begun_twice"),
        (_with_context(0, ended_ns=120), "crowded"),
        (_with_context(0, ended_ns=None, how=None), "crowded"),
        (_swapped, "disorder"),
        (_returned, "disorder"),
    ],
)
def test_whatever_is_wrong_is_found(broken: Break, found: str) -> None:
    assert found in {wrong.partition(":")[0] for wrong in violations(broken(_good()), MADE)}


# Remove the scheduler's safeguards one at a time: the reader of histories must notice


AGENTS = [f"agent-{number}" for number in range(40)]
KEYS = (
    "DROP INDEX uq_occurrences_time",
    "DROP INDEX uq_occurrences_running",
    "ALTER TABLE occurrences DROP CONSTRAINT pk_occurrences",
)


def _found(installation: Installation) -> set[str]:
    """The kinds of mistakes."""
    return {wrong.partition(":")[0] for wrong in violations(installation.history(), installation.made)}


@pytest.mark.slow
@shows("SCHEDULE-MUTATION")
@pytest.mark.parametrize("changes", [(), ("no fence",)], ids=["as it is", "without the fence"])
async def test_a_holder_whose_lease_ran_out_is_held_off_by_the_fence_alone(
    changes: tuple[str, ...], settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    # It does not check whether it still holds its work, so the fence is the only safeguard.
    told = ("no renewal", *changes)
    async with open_installation(tmp_path, settings, nursery, lease_s=1.0, changes=told) as installation:
        installation.receiver.manners("agent", Manner(How.HANG))
        await installation.add(once("agent", installation.clock()))
        [first] = installation.start()
        await installation.until(lambda: len(installation.arrivals()) == 1)
        await installation.hold_still(first)
        [second] = installation.start()
        await installation.until(installation.is_over)
        installation.receiver.release("agent")
        installation.go_on(first)
        installation.stop(first, second)
        assert (_found(installation) >= {"told_wrong", "unrecorded"}) if changes else _found(installation) == set()


@pytest.mark.slow
@shows("SCHEDULE-MUTATION")
@pytest.mark.parametrize("changes", [(), ("no renewal",)], ids=["as it is", "without renewal"])
async def test_a_long_delivery_is_kept_from_others_by_the_renewal_of_its_lease(
    changes: tuple[str, ...], settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    # Long enough for a worker that a busy machine does not run for a moment.
    lease_s = 0.5 if changes else 1.5
    async with open_installation(tmp_path, settings, nursery, lease_s=lease_s, changes=changes) as installation:
        installation.receiver.manners("agent", Manner(How.WELL, seconds=2.3 * lease_s + 0.2))
        await installation.add(once("agent", installation.clock()))
        crew = installation.start(2)
        await installation.until(installation.is_over)
        installation.stop(*crew)
        assert ({"begun_twice", "crowded"} <= _found(installation)) if changes else _found(installation) == set()


@pytest.mark.slow
@shows("SCHEDULE-MUTATION")
@pytest.mark.parametrize("changes", [(), ("no takeover",)], ids=["as it is", "without takeover"])
async def test_what_a_killed_worker_held_is_finished_because_its_lease_can_be_lost(
    changes: tuple[str, ...], settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery, changes=changes) as installation:
        installation.receiver.manners("agent", Manner(How.HANG))
        await installation.add(once("agent", installation.clock()))
        [first] = installation.start()
        await installation.until(lambda: len(installation.arrivals()) == 1)
        installation.kill(first)
        await installation.add(once("other", installation.clock()))
        [second] = installation.start()
        await installation.until(lambda: len(installation.arrivals()) == (2 if changes else 3))
        installation.stop(second)
        assert _found(installation) == ({"unsettled"} if changes else set())


@pytest.mark.slow
@shows("SCHEDULE-MUTATION")
@pytest.mark.parametrize("keys", [True, False], ids=["with the keys", "without the keys"])
async def test_where_two_look_at_once_the_keys_alone_keep_a_prompt_from_going_out_twice(
    keys: bool, postgres: Postgres, nursery: Nursery, tmp_path: Path
) -> None:
    url = postgres.create_database()
    settings = settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=url)
    async with open_installation(tmp_path, settings, nursery, changes=("no lock",)) as installation:
        if not keys:
            with psycopg.connect(url, autocommit=True) as connection:
                for key in KEYS:
                    connection.execute(key.encode())
        installation.receiver.chance(seed=7, slowest=0.02)
        await installation.add(*(once(agent, installation.clock() + number) for agent in AGENTS for number in range(5)))
        crew = installation.start(4)
        await installation.until(installation.is_over)
        installation.stop(*crew)
        assert ({"repeated", "begun_twice"} <= _found(installation)) if not keys else _found(installation) == set()
