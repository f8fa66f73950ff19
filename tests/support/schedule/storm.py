"""A storm by a seed: workers are killed while they work, others take their place, and people keep using Frontdesk."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import anyio

from frontdesk.schedules.model import Misfire, Overlap, ScheduleDefinition, SchedulePolicy
from tests.support.schedule.house import Installation
from tests.support.schedule.making import SECOND, every, once
from tests.support.schedule.manners import How

AGENTS = [f"agent-{number}" for number in range(12)]
SHARES = {How.ERROR: 0.04, How.BUSY: 0.03, How.DROP: 0.03, How.CUT: 0.02, How.UNKNOWN: 0.01}
SLOWEST = 0.06
# How long is waited at most for work to go on: so many times a moment of up to so many seconds.
PATIENCE, MOMENT = 30, 0.02
OVER_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Storm:
    """How hard it blows."""

    seed: int
    kills: int
    workers: int
    repetitions: int


async def blow(installation: Installation, storm: Storm) -> None:
    """Kill as often as told, then let those who are left bring everything to its end."""
    dice = random.Random(storm.seed)
    installation.receiver.chance(storm.seed, SLOWEST, SHARES)
    recurring = await installation.add(*_recurring(installation.clock(), storm.repetitions))
    crew = installation.start(storm.workers)
    for _ in range(storm.kills):
        await installation.add(*_one_shots(dice, installation.clock()))
        await _some_work(installation, dice)
        victim = crew.pop(dice.randrange(len(crew)))
        installation.kill(victim)
        crew += installation.start()
        await _somebody(installation, dice, recurring)
    await installation.until(installation.is_over, OVER_SECONDS)
    installation.stop(*crew)


async def _somebody(installation: Installation, dice: random.Random, recurring: list[int]) -> None:
    """Now and then a person cancels a schedule, or has one run at once."""
    chosen, wish = dice.randrange(len(recurring)), dice.random()
    if wish < 0.1 and len(recurring) > 1:
        await installation.cancel(recurring.pop(chosen))
    elif wish < 0.3:
        await installation.store.run_now(recurring[chosen], installation.clock())


def _recurring(now_us: int, times: int) -> Iterator[ScheduleDefinition]:
    """Two an agent, of every policy there is; each ends by itself."""
    start = now_us + SECOND // 2
    for number, agent in enumerate(AGENTS):
        yield every(agent, "1s", start + number, times=times)
        policy = list(_policies())[number % 5]
        yield every(agent, "2s", start - number, end_us=start + times * SECOND, policy=policy)


def _policies() -> Iterator[SchedulePolicy]:
    yield SchedulePolicy(misfire=Misfire.ALL, attempts=2)
    yield SchedulePolicy(misfire=Misfire.ONCE)
    yield SchedulePolicy(misfire=Misfire.SKIP)
    yield SchedulePolicy(misfire=Misfire.ALL, overlap=Overlap.SKIP)
    yield SchedulePolicy(misfire=Misfire.ALL, overlap=Overlap.ALLOW, max_late_s=30)


def _one_shots(dice: random.Random, now_us: int) -> list[ScheduleDefinition]:
    return [once(dice.choice(AGENTS), now_us + dice.randrange(SECOND // 3)) for _ in range(4)]


async def _some_work(installation: Installation, dice: random.Random) -> None:
    """Until a few more deliveries were begun, so that the next kill falls anywhere in the work on them."""
    wanted = installation.begun() + dice.randrange(6)
    for _ in range(PATIENCE):
        await anyio.sleep(dice.random() * MOMENT)
        if installation.begun() >= wanted:
            return
