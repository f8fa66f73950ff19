"""The tools for the agents' work queue."""

from collections.abc import Sequence
from functools import partial

from frontdesk.memory.asked import queue as asked
from frontdesk.memory.asked.common import Nothing, Which
from frontdesk.memory.model import AiStatus, AiTask
from frontdesk.memory.queue.figures.model import AiStats
from frontdesk.memory.queue.wanted import AiWanted
from frontdesk.memory.scope import Scope
from frontdesk.memory.service import MemoryRoom
from frontdesk.memory.tooling.clock import clock
from frontdesk.memory.tooling.telling.queue import waiting_told, work_line, work_told
from frontdesk.memory.tooling.telling.words import about, count, length, lines, listed, tallied
from frontdesk.memory.tooling.tool import MAKES, Answer, MemoryTool, Told

LIST = (
    "The pieces of work that a person has for agents, the last assigned first. Narrow it down by the agent's name or "
    'id, by status, mode or type. Example: {"agent_name": "Clerk", "status": "assigned"}. To see only what you are to '
    "do now, get_queued_tasks_for_agent is simpler."
)
QUEUED = (
    "The work that waits for one agent, the oldest first, with what another agent took and then fell silent about. "
    'Give your own name or id to see what you are to do. Example: {"agent_name": "Clerk"}. Take one with '
    "accept_ai_task before you begin."
)
GET = (
    "One piece of work with all that is needed to do it: objective, context, what counts as done, limits, what became "
    "of it so far. Read it before you accept it."
)
ACCEPT = (
    "Take a piece of work: it is yours from now on, and no other agent gets it. Say what it will cost and how many "
    "minutes it will take if you can tell; that must stay within its limits. You hold it for a while, and each "
    "update_ai_task keeps it longer; fall silent, and another agent may take it. "
    'Example: {"id": "0199…", "estimated_duration_min": 20}.'
)
UPDATE = (
    "Say how your work goes: how far you are, that it is paused, or what came of it so far. What you leave out stays "
    'as it is. Example: {"id": "0199…", "progress_message": "Compared two of three hotels"}.'
)
COMPLETE = (
    "Say that a piece of work is done, with what came of it: output is the result in words, artifacts are things that "
    'were made, each with type, name and content. Example: {"id": "0199…", "output": "The Astoria is the cheapest", '
    '"artifacts": [{"type": "markdown", "name": "comparison", "content": "…"}]}. All of it is kept.'
)
FAIL = (
    "Say that a piece of work could not be done, and why, so that somebody can help. It can be assigned again. "
    'Example: {"id": "0199…", "error_message": "The hotel\'s site asks for a login that I do not have"}.'
)
STATS = "How much work there is for agents, by status, mode, type and agent, how much of it succeeds, what it costs."
NONE = "There is no such work. Without filters, get_ai_tasks shows all there is."
WAITING = 50


class AiTaskAnswer(Answer):
    """One piece of work."""

    ai_task: AiTask


class AiTasksAnswer(Answer):
    """Some of the work, and how much there is of it in all."""

    ai_tasks: Sequence[AiTask]
    total: int
    offset: int
    has_more: bool


class WaitingAnswer(Answer):
    """The oldest of what waits, and whether there is more."""

    ai_tasks: Sequence[AiTask]
    has_more: bool


class AiStatsAnswer(Answer):
    """The queue in figures."""

    stats: AiStats


async def show(room: MemoryRoom, scope: Scope, given: asked.GetAiTasks) -> Told:
    wanted = AiWanted(**given.said("limit", "offset"), limit=given.limit, offset=given.offset)
    page = await room.queue.list(scope, wanted)
    zone = await clock(room, scope)
    text = listed(page, partial(work_line, zone=zone), "piece of work", "pieces of work", none=NONE)
    answer = AiTasksAnswer(ai_tasks=page.items, total=page.total, offset=page.offset, has_more=page.has_more)
    return Told(text, answer)


async def queued(room: MemoryRoom, scope: Scope, given: asked.Queued) -> Told:
    waiting = await room.queue.queued(scope, given.agent_name, WAITING + 1)
    answer = WaitingAnswer(ai_tasks=waiting[:WAITING], has_more=len(waiting) > WAITING)
    return Told(waiting_told(answer.ai_tasks, await clock(room, scope), more=answer.has_more), answer)


async def get(room: MemoryRoom, scope: Scope, given: Which) -> Told:
    work = await room.queue.get(scope, given.id)
    return await _told(room, scope, work, "")


async def accept(room: MemoryRoom, scope: Scope, given: asked.AcceptAiTask) -> Told:
    work = await room.queue.accept(scope, given.id, given.estimated_cost_usd, given.estimated_duration_min)
    return await _told(room, scope, work, "It is yours now.")


async def update(room: MemoryRoom, scope: Scope, given: asked.UpdateAiTask) -> Told:
    status = AiStatus(given.status) if given.status else None
    work = await room.queue.report(scope, given.id, status, given.said("id", "status"))
    return await _told(room, scope, work, "Noted.")


async def complete(room: MemoryRoom, scope: Scope, given: asked.CompleteAiTask) -> Told:
    work = await room.queue.complete(scope, given.id, given.said("id"))
    return await _told(room, scope, work, "Completed.")


async def fail(room: MemoryRoom, scope: Scope, given: asked.FailAiTask) -> Told:
    work = await room.queue.fail(scope, given.id, given.error_message)
    return await _told(room, scope, work, "Noted that it failed.")


async def stats(room: MemoryRoom, scope: Scope, _given: Nothing) -> Told:
    found = await room.queue.stats(scope)
    text = lines(
        f"{count(found.total, 'piece', 'pieces')} of work: {found.active:,} active, {found.completed:,} completed, "
        f"{found.failed:,} failed; {found.overdue:,} overdue",
        tallied("By status", found.by_status),
        tallied("By mode", found.by_mode),
        tallied("By type", found.by_type),
        tallied("By agent", found.by_agent),
        about(
            [
                f"{100 * found.success_rate:g}% of what ended was completed",
                f"{length(round(found.avg_duration_min))} on average" if found.avg_duration_min else "",
                f"${found.avg_cost_usd:g} a piece" if found.avg_cost_usd is not None else "",
                f"${found.total_cost_usd:g} spent",
            ]
        ),
    )
    return Told(text, AiStatsAnswer(stats=found))


async def _told(room: MemoryRoom, scope: Scope, work: AiTask, first: str) -> Told:
    zone = await clock(room, scope)
    return Told(lines(first, work_told(work, zone)), AiTaskAnswer(ai_task=work))


QUEUE: tuple[MemoryTool, ...] = (
    MemoryTool("get_ai_tasks", "List agents' work", LIST, asked.GetAiTasks, AiTasksAnswer, show),
    MemoryTool("get_queued_tasks_for_agent", "What waits for an agent", QUEUED, asked.Queued, WaitingAnswer, queued),
    MemoryTool("get_ai_task", "Look at a piece of work", GET, Which, AiTaskAnswer, get),
    MemoryTool("accept_ai_task", "Take a piece of work", ACCEPT, asked.AcceptAiTask, AiTaskAnswer, accept, **MAKES),
    MemoryTool("update_ai_task", "Report on work", UPDATE, asked.UpdateAiTask, AiTaskAnswer, update, **MAKES),
    MemoryTool("complete_ai_task", "Complete work", COMPLETE, asked.CompleteAiTask, AiTaskAnswer, complete, **MAKES),
    MemoryTool("fail_ai_task", "Give work back as failed", FAIL, asked.FailAiTask, AiTaskAnswer, fail, **MAKES),
    MemoryTool("get_ai_task_stats", "Agents' work in figures", STATS, Nothing, AiStatsAnswer, stats),
)
