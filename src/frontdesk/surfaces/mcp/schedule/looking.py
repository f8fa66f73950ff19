"""The tools that look: at schedules, at what became of them, at the scheduler and the agents it speaks to."""

from frontdesk.app import App
from frontdesk.errors import Invalid
from frontdesk.identity.model import Caller, Source
from frontdesk.schedule import numbers
from frontdesk.schedule.asked import LISTED, PastWanted, Wanted
from frontdesk.schedule.model import Standing
from frontdesk.surfaces.given import flag
from frontdesk.surfaces.mcp.core import NoArguments
from frontdesk.surfaces.mcp.schedule.asked import RUNS, History, Listing, Upload, number, said, text
from frontdesk.surfaces.mcp.schedule.told import (
    Agents,
    Connection,
    ExecutorStatus,
    ListedAgent,
    Runs,
    Schedules,
    UploadedTool,
)
from frontdesk.surfaces.mcp.tool import Result
from frontdesk.surfaces.scheduled import ExecutorShape

STATED = frozenset({Source.HEADER, Source.PARAMETER, Source.METADATA})


async def show(app: App, caller: Caller, given: Listing) -> Result:
    wanted = Wanted(
        # Who may see everybody's, and names an agent, asks for that agent's.
        caller.agent_id if caller.source in STATED else None,
        include_cancelled=flag(given.include_cancelled),
        after_id=number(given.after, 0),
        limit=number(given.limit, LISTED),
    )
    listed = await app.schedules.looking.list(caller, wanted)
    return Schedules.of(listed).result()


async def history(app: App, caller: Caller, given: History) -> Result:
    wanted = PastWanted(
        None if given.schedule_id is None else numbers.schedule_id(given.schedule_id),
        standing=standing(text(given.standing)),
        before=text(given.before),
        limit=number(given.limit, RUNS),
    )
    return Runs.of(await app.schedules.looking.history(caller, wanted)).result()


def standing(word: str | None) -> Standing | None:
    if word is None:
        return None
    try:
        return Standing(word.lower())
    except ValueError as error:
        raise Invalid(f"'{word[:40]}' is not a standing; there are: {', '.join(Standing)}") from error


async def agents(app: App, caller: Caller, _given: NoArguments) -> Result:
    found = await app.schedules.hosted.agents(caller)
    listed = [ListedAgent(id=one.id, name=one.name, description=one.description) for one in found]
    return Agents(agents=listed).result()


async def test(app: App, caller: Caller, _given: NoArguments) -> Result:
    found = await app.schedules.hosted.test(caller)
    return Connection(message=found.message, details=dict(found.details)).result()


async def upload(app: App, caller: Caller, given: Upload) -> Result:
    name, about = text(given.name), text(given.description)
    done = await app.schedules.hosted.upload_tool(caller, said(given.source_code), name, about)
    return UploadedTool(tool_id=done.tool_id, name=done.name).result()


async def executor_status(app: App, caller: Caller, _given: NoArguments) -> Result:
    found = ExecutorShape.of(await app.schedules.executing.executor(caller))
    return ExecutorStatus.model_validate(found.model_dump()).result()
