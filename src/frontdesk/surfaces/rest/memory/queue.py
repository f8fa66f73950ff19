"""The agents' work queue over HTTP, under /api/ai-tasks."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Body, Query

from frontdesk.memory.asked.queue import AiTaskContent, NewAiTaskContent
from frontdesk.memory.queue.wanted import AiWanted
from frontdesk.memory.service import MemoryRoom
from frontdesk.surfaces.rest.memory import examples
from frontdesk.surfaces.rest.memory.bodies import Accept, Claim, Complete, Fail, Renew
from frontdesk.surfaces.rest.memory.examples import sent, shown
from frontdesk.surfaces.rest.memory.queries import AiTaskQuery, Where
from frontdesk.surfaces.rest.memory.told import AiTaskList, AiTaskStats, Gone, OneAiTask, PerhapsAiTask
from frontdesk.surfaces.rest.memory.who import ReadsWork, WritesWork

ALL = "/ai-tasks"
ONE = f"{ALL}/{{ai_task_id}}"
AI_TASK = {"ai_task": examples.ai_task}


def add_queue(router: APIRouter, room: MemoryRoom) -> None:
    _add_lists(router, room)
    _add_one(router, room)
    _add_work(router, room)
    _add_outcomes(router, room)


def _add_lists(router: APIRouter, room: MemoryRoom) -> None:
    @router.get(
        ALL, responses=shown({"ai_tasks": [examples.ai_task], "count": 1}), summary="Work for agents, without history"
    )
    async def list_ai_tasks(scope: ReadsWork, query: Annotated[AiTaskQuery, Query()]) -> AiTaskList:
        found = await room.queue.list(scope, AiWanted(**query.model_dump()))
        return AiTaskList(ai_tasks=found.items, count=found.total)

    @router.post(ALL, status_code=201, responses=shown(AI_TASK, 201), summary="Put work into the queue")
    async def create_ai_task(
        scope: WritesWork,
        asked: Annotated[NewAiTaskContent, Body(openapi_examples=sent(examples.NEW_AI_TASK))],
        timezone: Where = None,
    ) -> OneAiTask:
        return OneAiTask(ai_task=await room.queue.create(scope, asked.said(), timezone))

    @router.get(f"{ALL}/stats", summary="How the work goes, in numbers")
    async def ai_task_stats(scope: ReadsWork, timezone: Where = None) -> AiTaskStats:
        return AiTaskStats(stats=await room.queue.stats(scope, timezone))

    @router.post(
        f"{ALL}/claim", responses=shown(AI_TASK), summary="Take the next piece of work of an agent, if there is one"
    )
    async def claim_ai_task(scope: WritesWork, asked: Claim | None = None) -> PerhapsAiTask:
        how = asked or Claim()
        taken = await room.queue.claim(scope, how.agent_name, lease=_lease(how.lease_seconds))
        return PerhapsAiTask(ai_task=taken)


def _add_one(router: APIRouter, room: MemoryRoom) -> None:
    @router.get(ONE, responses=shown(AI_TASK), summary="A piece of work, with its history")
    async def show_ai_task(scope: ReadsWork, ai_task_id: str) -> OneAiTask:
        return OneAiTask(ai_task=await room.queue.get(scope, ai_task_id))

    @router.put(ONE, responses=shown(AI_TASK), summary="Change a piece of work, or say how it stands")
    async def update_ai_task(
        scope: WritesWork, ai_task_id: str, asked: AiTaskContent, timezone: Where = None
    ) -> OneAiTask:
        return OneAiTask(ai_task=await room.queue.update(scope, ai_task_id, asked.changes(), timezone))

    @router.delete(ONE, summary="Take work out of the queue for good")
    async def delete_ai_task(scope: WritesWork, ai_task_id: str) -> Gone:
        return Gone(message="AI task deleted", id=(await room.queue.delete(scope, ai_task_id)).id)


def _add_work(router: APIRouter, room: MemoryRoom) -> None:
    @router.post(f"{ONE}/approve", responses=shown(AI_TASK), summary="Let work be executed; for the person alone")
    async def approve_ai_task(scope: WritesWork, ai_task_id: str) -> OneAiTask:
        return OneAiTask(ai_task=await room.queue.approve(scope, ai_task_id))

    @router.post(f"{ONE}/accept", responses=shown(AI_TASK), summary="Take this piece of work")
    async def accept_ai_task(scope: WritesWork, ai_task_id: str, asked: Accept | None = None) -> OneAiTask:
        how = asked or Accept()
        taken = await room.queue.accept(
            scope,
            ai_task_id,
            how.estimated_cost_usd,
            how.estimated_duration_min,
            agent_name=how.agent_name,
            lease=_lease(how.lease_seconds),
        )
        return OneAiTask(ai_task=taken)

    @router.post(f"{ONE}/renew", responses=shown(AI_TASK), summary="Hold work for longer")
    async def renew_ai_task(scope: WritesWork, ai_task_id: str, asked: Renew) -> OneAiTask:
        held = await room.queue.renew(scope, ai_task_id, asked.claims, lease=_lease(asked.lease_seconds))
        return OneAiTask(ai_task=held)


def _add_outcomes(router: APIRouter, room: MemoryRoom) -> None:
    @router.post(f"{ONE}/complete", responses=shown(AI_TASK), summary="Say that work is done, and what came of it")
    async def complete_ai_task(scope: WritesWork, ai_task_id: str, asked: Complete | None = None) -> OneAiTask:
        how = asked or Complete()
        done = await room.queue.complete(scope, ai_task_id, how.said("claims"), claims=how.claims)
        return OneAiTask(ai_task=done)

    @router.post(f"{ONE}/fail", responses=shown(AI_TASK), summary="Say that work could not be done, and why")
    async def fail_ai_task(scope: WritesWork, ai_task_id: str, asked: Fail) -> OneAiTask:
        return OneAiTask(ai_task=await room.queue.fail(scope, ai_task_id, asked.error_message, claims=asked.claims))


def _lease(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
