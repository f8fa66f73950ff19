"""Prompts that come later: some that have run, one that waits, one that was paused, one that was given up."""

from collections.abc import Sequence

import anyio

from frontdesk.agents.host import Agent
from frontdesk.app import App
from frontdesk.identity.model import Caller
from frontdesk.schedule.asked import Asked, PastWanted
from frontdesk.schedule.model import Standing
from frontdesk.surfaces.demo import scripts

SECONDS = 20
POLL_SECONDS = 0.05
UNDER_WAY = (Standing.RUNNING, Standing.WAITING)


async def plan(app: App, person: Caller, agents: Sequence[Agent], zone: str) -> Sequence[int]:
    """Make the schedules; the numbers of those that are to run now."""
    ada, bruno, cleo = (agent.id for agent in agents)
    add = app.schedules.add
    morning = await add(person, Asked(scripts.MORNING, agent_id=ada, when="every weekday at 8am", zone=zone))
    tickets = await add(person, Asked(scripts.TICKETS, agent_id=bruno, every="2h"))
    sales = await add(person, Asked(scripts.SALES, agent_id=cleo, cron="0 17 * * FRI", zone=zone))
    broken = await add(person, Asked(scripts.BROKEN, agent_id=cleo, when="every day at 6am", zone=zone, attempts=1))
    await add(person, Asked("Remind Ann of the workshop.", agent_id=ada, when="tomorrow at 9am", zone=zone))
    paused = await add(person, Asked("Check the plants.", agent_id=ada, when="every sunday at 10am", zone=zone))
    await app.schedules.pause(person, paused.schedule.id)
    dropped = await add(person, Asked("Ping the old warehouse.", agent_id=cleo, every="30m"))
    await app.schedules.cancel(person, dropped.schedule.id)
    return [one.schedule.id for one in (morning, tickets, sales, broken)]


async def run(app: App, person: Caller, numbers: Sequence[int]) -> None:
    """Run these now, and wait for what comes of them; what takes too long goes on without us."""
    for number in numbers:
        await app.schedules.run_now(person, number)
    with anyio.move_on_after(SECONDS):
        for number in numbers:
            await _over(app, person, number)


async def _over(app: App, person: Caller, number: int) -> None:
    """Wait until the newest run of a schedule has ended, one way or another."""
    while True:
        found = await app.schedules.looking.history(person, PastWanted(schedule_id=number, limit=1))
        if not any(run.standing in UNDER_WAY for run in found.runs):
            return
        await anyio.sleep(POLL_SECONDS)
