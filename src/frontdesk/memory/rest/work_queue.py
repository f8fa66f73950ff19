"""Answers the HTTP API about the work queue of agents, in the shapes of its contract."""

from datetime import timedelta

from frontdesk.memory.model import PersonScope
from frontdesk.memory.operations.base import ZoneQuery
from frontdesk.memory.operations.task_requests import AiTaskContent
from frontdesk.memory.rest.requests import (
    AcceptWorkRequest,
    AiTaskIdRequest,
    AiTaskQuery,
    ClaimWorkRequest,
    CompleteWorkRequest,
    CreateAiTaskRequest,
    FailWorkRequest,
    RenewAiTaskRequest,
)
from frontdesk.memory.rest.responses import (
    AiTaskListResponse,
    AiTaskResponse,
    AiTaskStatsResponse,
    DeletedResponse,
    OptionalAiTaskResponse,
)
from frontdesk.memory.service import RecordServices
from frontdesk.memory.work_queue_rules import AiTaskFilter
from frontdesk.operations import EmptyQuery, RestInput


async def list_ai_tasks(
    services: RecordServices, scope: PersonScope, request: RestInput[AiTaskQuery, None]
) -> AiTaskListResponse:
    page = await services.work_queue.list(scope, AiTaskFilter(**request.query.model_dump()))
    return AiTaskListResponse(ai_tasks=page.items, count=page.total)


async def show_ai_task(
    services: RecordServices, scope: PersonScope, request: RestInput[EmptyQuery, None]
) -> AiTaskResponse:
    return AiTaskResponse(ai_task=await services.work_queue.get(scope, request.path["ai_task_id"]))


async def ai_task_stats(
    services: RecordServices, scope: PersonScope, request: RestInput[ZoneQuery, None]
) -> AiTaskStatsResponse:
    return AiTaskStatsResponse(stats=await services.work_queue.stats(scope, request.query.timezone))


async def create_ai_task(services: RecordServices, scope: PersonScope, request: CreateAiTaskRequest) -> AiTaskResponse:
    fields = request.provided("timezone")
    return AiTaskResponse(ai_task=await services.work_queue.create(scope, fields, request.timezone))


async def update_ai_task(
    services: RecordServices, scope: PersonScope, request: RestInput[ZoneQuery, AiTaskContent]
) -> AiTaskResponse:
    fields, zone = request.body.changes(), request.query.timezone
    return AiTaskResponse(ai_task=await services.work_queue.update(scope, request.path["ai_task_id"], fields, zone))


async def delete_ai_task(services: RecordServices, scope: PersonScope, request: AiTaskIdRequest) -> DeletedResponse:
    work = await services.work_queue.delete(scope, request.ai_task_id)
    return DeletedResponse(message="AI task deleted", id=work.id)


async def claim_ai_task(
    services: RecordServices, scope: PersonScope, request: ClaimWorkRequest
) -> OptionalAiTaskResponse:
    work = await services.work_queue.claim(scope, request.agent_name, lease=_lease_time(request.lease_seconds))
    return OptionalAiTaskResponse(ai_task=work)


async def approve_ai_task(services: RecordServices, scope: PersonScope, request: AiTaskIdRequest) -> AiTaskResponse:
    return AiTaskResponse(ai_task=await services.work_queue.approve(scope, request.ai_task_id))


async def accept_ai_task(
    services: RecordServices, scope: PersonScope, request: RestInput[EmptyQuery, AcceptWorkRequest | None]
) -> AiTaskResponse:
    body = request.body or AcceptWorkRequest()
    work = await services.work_queue.accept(
        scope,
        request.path["ai_task_id"],
        body.estimated_cost_usd,
        body.estimated_duration_min,
        agent_name=body.agent_name,
        lease=_lease_time(body.lease_seconds),
    )
    return AiTaskResponse(ai_task=work)


async def renew_ai_task(services: RecordServices, scope: PersonScope, request: RenewAiTaskRequest) -> AiTaskResponse:
    lease = _lease_time(request.lease_seconds)
    return AiTaskResponse(
        ai_task=await services.work_queue.renew(scope, request.ai_task_id, request.claims, lease=lease)
    )


async def complete_ai_task(
    services: RecordServices, scope: PersonScope, request: RestInput[EmptyQuery, CompleteWorkRequest | None]
) -> AiTaskResponse:
    body = request.body or CompleteWorkRequest()
    fields = body.provided("claims")
    work = await services.work_queue.complete(scope, request.path["ai_task_id"], fields, claims=body.claims)
    return AiTaskResponse(ai_task=work)


async def fail_ai_task(
    services: RecordServices, scope: PersonScope, request: RestInput[EmptyQuery, FailWorkRequest]
) -> AiTaskResponse:
    message, claims = request.body.error_message, request.body.claims
    work = await services.work_queue.fail(scope, request.path["ai_task_id"], message, claims=claims)
    return AiTaskResponse(ai_task=work)


def _lease_time(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
