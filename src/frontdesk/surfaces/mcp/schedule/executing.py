"""`promptyoself_execute`: run what is due now, once or for a while."""

from collections.abc import Sequence

from frontdesk.app import App
from frontdesk.identity.model import Caller
from frontdesk.schedule.asked import LOOP_SECONDS, Executed
from frontdesk.surfaces.given import flag
from frontdesk.surfaces.mcp.line import Line
from frontdesk.surfaces.mcp.schedule.asked import Execute, number
from frontdesk.surfaces.mcp.schedule.told import Execution
from frontdesk.surfaces.mcp.tool import Result


async def execute(app: App, caller: Caller, given: Execute, line: Line) -> Result:
    """A client that hangs up, or cancels its call, ends the loop; nothing that it began is lost."""
    if not flag(given.loop):
        return Execution.of(await app.schedules.executing.once(caller)).result()
    done = 0

    async def told(number: int, executed: Sequence[Executed]) -> None:
        nonlocal done
        done += len(executed)
        if line.progress is not None:
            await line.progress(number, None, f"{done} prompts executed")

    await app.schedules.executing.loop(caller, given.interval, number(given.max_seconds, LOOP_SECONDS), told)
    return Execution(message="Scheduler loop completed").result()
