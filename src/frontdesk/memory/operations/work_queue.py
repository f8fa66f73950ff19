"""Declares what can be asked about the work queue of agents."""

from collections.abc import Sequence
from functools import partial

from frontdesk.identity.rights import AI_TASKS_READ, AI_TASKS_WRITE
from frontdesk.memory.model import AiStatus, AiTask, PersonScope
from frontdesk.memory.operations.base import (
    EmptyRequest,
    RecordIdRequest,
    ToolAnswer,
    ZoneQuery,
    for_person,
    format_page,
    join_lines,
    memory_agent_tool,
    memory_route,
    memory_tool,
    person_zone,
)
from frontdesk.memory.operations.task_requests import (
    AcceptAiTask,
    AiTaskContent,
    CompleteAiTask,
    FailAiTask,
    GetAiTasks,
    GetQueuedTasks,
    NewAiTaskContent,
    UpdateAiTask,
)
from frontdesk.memory.operations.task_text import format_waiting, format_work, format_work_line, format_work_stats
from frontdesk.memory.rest import work_queue as rest
from frontdesk.memory.rest.requests import (
    AcceptWorkRequest,
    AiTaskIdRequest,
    AiTaskQuery,
    ClaimWorkRequest,
    CompleteWorkRequest,
    CreateAiTaskRequest,
    FailWorkRequest,
    RenewAiTaskRequest,
    RenewLeaseRequest,
)
from frontdesk.memory.rest.responses import (
    EXAMPLE_AI_TASK,
    NEW_AI_TASK,
    AiTaskListResponse,
    AiTaskResponse,
    AiTaskStatsResponse,
    DeletedResponse,
    OptionalAiTaskResponse,
)
from frontdesk.memory.service import RecordServices
from frontdesk.memory.work_queue_rules import AiTaskFilter, AiTaskStats
from frontdesk.operations import Answer, Effect, Operation, Requires

LIST_WORK = (
    "The pieces of work that a person has for agents, the last assigned first. Narrow it down by the agent's name or "
    'id, by status, mode or type. Example: {"agent_name": "Clerk", "status": "assigned"}. To see only what you are to '
    "do now, get_queued_tasks_for_agent is simpler."
)
LIST_WAITING = (
    "The work that waits for one agent, the oldest first, with what another agent took and then fell silent about. "
    'Give your own name or id to see what you are to do. Example: {"agent_name": "Clerk"}. Take one with '
    "accept_ai_task before you begin."
)
GET_WORK = (
    "One piece of work with all that is needed to do it: objective, context, what counts as done, limits, what became "
    "of it so far. Read it before you accept it."
)
ACCEPT_WORK = (
    "Take a piece of work: it is yours from now on, and no other agent gets it. Say what it will cost and how many "
    "minutes it will take if you can tell; that must stay within its limits. You hold it for a while, and each "
    "update_ai_task keeps it longer; fall silent, and another agent may take it. "
    'Example: {"id": "0199…", "estimated_duration_min": 20}.'
)
REPORT_WORK = (
    "Say how your work goes: how far you are, that it is paused, or what came of it so far. What you leave out stays "
    'as it is. Example: {"id": "0199…", "progress_message": "Compared two of three hotels"}.'
)
COMPLETE_WORK = (
    "Say that a piece of work is done, with what came of it: output is the result in words, artifacts are things that "
    'were made, each with type, name and content. Example: {"id": "0199…", "output": "The Astoria is the cheapest", '
    '"artifacts": [{"type": "markdown", "name": "comparison", "content": "…"}]}. All of it is kept.'
)
FAIL_WORK = (
    "Say that a piece of work could not be done, and why, so that somebody can help. It can be assigned again. "
    'Example: {"id": "0199…", "error_message": "The hotel\'s site asks for a login that I do not have"}.'
)
GET_WORK_STATS = (
    "How much work there is for agents, by status, mode, type and agent, how much of it succeeds, what it costs."
)
NO_WORK = "There is no such work. Without filters, get_ai_tasks shows all there is."
MAX_WAITING = 50


class AiTaskAnswer(ToolAnswer):
    """One piece of work."""

    ai_task: AiTask


class AiTasksAnswer(ToolAnswer):
    """A page of work."""

    ai_tasks: Sequence[AiTask]
    total: int
    offset: int
    has_more: bool


class WaitingAnswer(ToolAnswer):
    """The oldest waiting work, and whether there is more."""

    ai_tasks: Sequence[AiTask]
    has_more: bool


class AiTaskStatsAnswer(ToolAnswer):
    """Statistics of the queue."""

    stats: AiTaskStats


async def get_ai_tasks(services: RecordServices, scope: PersonScope, request: GetAiTasks) -> Answer:
    filters = AiTaskFilter(**request.provided("limit", "offset"), limit=request.limit, offset=request.offset)
    page = await services.work_queue.list(scope, filters)
    zone = await person_zone(services, scope)
    text = format_page(page, partial(format_work_line, zone=zone), "piece of work", "pieces of work", none=NO_WORK)
    data = AiTasksAnswer(ai_tasks=page.items, total=page.total, offset=page.offset, has_more=page.has_more)
    return Answer(text, data)


async def get_queued_tasks(services: RecordServices, scope: PersonScope, request: GetQueuedTasks) -> Answer:
    waiting = await services.work_queue.list_waiting(scope, request.agent_name, MAX_WAITING + 1)
    data = WaitingAnswer(ai_tasks=waiting[:MAX_WAITING], has_more=len(waiting) > MAX_WAITING)
    return Answer(format_waiting(data.ai_tasks, await person_zone(services, scope), more=data.has_more), data)


async def get_ai_task(services: RecordServices, scope: PersonScope, request: RecordIdRequest) -> Answer:
    return await _work_answer(services, scope, await services.work_queue.get(scope, request.id), "")


async def accept_ai_task(services: RecordServices, scope: PersonScope, request: AcceptAiTask) -> Answer:
    work = await services.work_queue.accept(
        scope, request.id, request.estimated_cost_usd, request.estimated_duration_min
    )
    return await _work_answer(services, scope, work, "It is yours now.")


async def update_ai_task(services: RecordServices, scope: PersonScope, request: UpdateAiTask) -> Answer:
    status = AiStatus(request.status) if request.status else None
    work = await services.work_queue.report(scope, request.id, status, request.provided("id", "status"))
    return await _work_answer(services, scope, work, "Noted.")


async def complete_ai_task(services: RecordServices, scope: PersonScope, request: CompleteAiTask) -> Answer:
    work = await services.work_queue.complete(scope, request.id, request.provided("id"))
    return await _work_answer(services, scope, work, "Completed.")


async def fail_ai_task(services: RecordServices, scope: PersonScope, request: FailAiTask) -> Answer:
    work = await services.work_queue.fail(scope, request.id, request.error_message)
    return await _work_answer(services, scope, work, "Noted that it failed.")


async def get_ai_task_stats(services: RecordServices, scope: PersonScope, _request: EmptyRequest) -> Answer:
    stats = await services.work_queue.stats(scope)
    return Answer(format_work_stats(stats), AiTaskStatsAnswer(stats=stats))


async def _work_answer(services: RecordServices, scope: PersonScope, work: AiTask, first: str) -> Answer:
    text = join_lines(first, format_work(work, await person_zone(services, scope)))
    return Answer(text, AiTaskAnswer(ai_task=work))


WORK_PATH = "/ai-tasks"
WORK_ITEM_PATH = f"{WORK_PATH}/{{ai_task_id}}"
AI_TASK_EXAMPLE = {"ai_task": EXAMPLE_AI_TASK}
WORK_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="get_ai_tasks",
        summary="Work for agents, without history",
        request=GetAiTasks,
        run=for_person(get_ai_tasks),
        scopes=(AI_TASKS_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("List agents' work", LIST_WORK, AiTasksAnswer),
        rest=memory_route(
            "GET",
            WORK_PATH,
            name="list_ai_tasks",
            run=rest.list_ai_tasks,
            query=AiTaskQuery,
            response=AiTaskListResponse,
            example={"ai_tasks": [EXAMPLE_AI_TASK], "count": 1},
        ),
        agents=memory_agent_tool("get_ai_tasks", LIST_WORK),
    ),
    Operation(
        name="get_queued_tasks_for_agent",
        summary="The work that waits for an agent",
        request=GetQueuedTasks,
        run=for_person(get_queued_tasks),
        scopes=(AI_TASKS_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("What waits for an agent", LIST_WAITING, WaitingAnswer),
        agents=memory_agent_tool("get_queued_tasks_for_agent", LIST_WAITING),
    ),
    Operation(
        name="get_ai_task",
        summary="A piece of work, with its history",
        request=RecordIdRequest,
        run=for_person(get_ai_task),
        scopes=(AI_TASKS_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("Look at a piece of work", GET_WORK, AiTaskAnswer),
        rest=memory_route(
            "GET",
            WORK_ITEM_PATH,
            name="show_ai_task",
            run=rest.show_ai_task,
            response=AiTaskResponse,
            example=AI_TASK_EXAMPLE,
        ),
        agents=memory_agent_tool("get_ai_task", GET_WORK),
    ),
    Operation(
        name="accept_ai_task",
        summary="Take this piece of work",
        request=AcceptAiTask,
        run=for_person(accept_ai_task),
        scopes=(AI_TASKS_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.ADDS,
        mcp=memory_tool("Take a piece of work", ACCEPT_WORK, AiTaskAnswer, name="accept_ai_task"),
        rest=memory_route(
            "POST",
            f"{WORK_ITEM_PATH}/accept",
            run=rest.accept_ai_task,
            body=AcceptWorkRequest,
            body_required=False,
            response=AiTaskResponse,
            example=AI_TASK_EXAMPLE,
        ),
        agents=memory_agent_tool("accept_ai_task", ACCEPT_WORK),
    ),
    Operation(
        name="update_ai_task",
        summary="Change a piece of work, or say how it stands",
        request=UpdateAiTask,
        run=for_person(update_ai_task),
        scopes=(AI_TASKS_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.ADDS,
        mcp=memory_tool("Report on work", REPORT_WORK, AiTaskAnswer, name="update_ai_task"),
        rest=memory_route(
            "PUT",
            WORK_ITEM_PATH,
            run=rest.update_ai_task,
            query=ZoneQuery,
            body=AiTaskContent,
            response=AiTaskResponse,
            example=AI_TASK_EXAMPLE,
        ),
        agents=memory_agent_tool("update_ai_task", REPORT_WORK),
    ),
    Operation(
        name="complete_ai_task",
        summary="Say that work is done, and what came of it",
        request=CompleteAiTask,
        run=for_person(complete_ai_task),
        scopes=(AI_TASKS_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.ADDS,
        mcp=memory_tool("Complete work", COMPLETE_WORK, AiTaskAnswer, name="complete_ai_task"),
        rest=memory_route(
            "POST",
            f"{WORK_ITEM_PATH}/complete",
            run=rest.complete_ai_task,
            body=CompleteWorkRequest,
            body_required=False,
            response=AiTaskResponse,
            example=AI_TASK_EXAMPLE,
        ),
        agents=memory_agent_tool("complete_ai_task", COMPLETE_WORK),
    ),
    Operation(
        name="fail_ai_task",
        summary="Say that work could not be done, and why",
        request=FailAiTask,
        run=for_person(fail_ai_task),
        scopes=(AI_TASKS_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.ADDS,
        mcp=memory_tool("Give work back as failed", FAIL_WORK, AiTaskAnswer, name="fail_ai_task"),
        rest=memory_route(
            "POST",
            f"{WORK_ITEM_PATH}/fail",
            run=rest.fail_ai_task,
            body=FailWorkRequest,
            response=AiTaskResponse,
            example=AI_TASK_EXAMPLE,
        ),
        agents=memory_agent_tool("fail_ai_task", FAIL_WORK),
    ),
    Operation(
        name="get_ai_task_stats",
        summary="How the work goes, in numbers",
        request=EmptyRequest,
        run=for_person(get_ai_task_stats),
        scopes=(AI_TASKS_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("Agents' work in figures", GET_WORK_STATS, AiTaskStatsAnswer),
        rest=memory_route(
            "GET",
            f"{WORK_PATH}/stats",
            name="ai_task_stats",
            run=rest.ai_task_stats,
            query=ZoneQuery,
            response=AiTaskStatsResponse,
        ),
        agents=memory_agent_tool("get_ai_task_stats", GET_WORK_STATS),
    ),
    Operation(
        name="create_ai_task",
        summary="Put work into the queue",
        request=CreateAiTaskRequest,
        run=for_person(rest.create_ai_task),
        scopes=(AI_TASKS_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.ADDS,
        rest=memory_route(
            "POST",
            WORK_PATH,
            query=ZoneQuery,
            body=NewAiTaskContent,
            body_example=NEW_AI_TASK,
            response=AiTaskResponse,
            status=201,
            example=AI_TASK_EXAMPLE,
        ),
    ),
    Operation(
        name="claim_ai_task",
        summary="Take the next piece of work of an agent, if there is one",
        request=ClaimWorkRequest,
        run=for_person(rest.claim_ai_task),
        scopes=(AI_TASKS_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        rest=memory_route(
            "POST", f"{WORK_PATH}/claim", body_required=False, response=OptionalAiTaskResponse, example=AI_TASK_EXAMPLE
        ),
    ),
    Operation(
        name="delete_ai_task",
        summary="Take work out of the queue for good",
        request=AiTaskIdRequest,
        run=for_person(rest.delete_ai_task),
        scopes=(AI_TASKS_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        rest=memory_route("DELETE", WORK_ITEM_PATH, response=DeletedResponse),
    ),
    Operation(
        name="approve_ai_task",
        summary="Let work be executed; for the person alone",
        request=AiTaskIdRequest,
        run=for_person(rest.approve_ai_task),
        scopes=(AI_TASKS_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        rest=memory_route("POST", f"{WORK_ITEM_PATH}/approve", response=AiTaskResponse, example=AI_TASK_EXAMPLE),
    ),
    Operation(
        name="renew_ai_task",
        summary="Hold work for longer",
        request=RenewAiTaskRequest,
        run=for_person(rest.renew_ai_task),
        scopes=(AI_TASKS_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        rest=memory_route(
            "POST", f"{WORK_ITEM_PATH}/renew", body=RenewLeaseRequest, response=AiTaskResponse, example=AI_TASK_EXAMPLE
        ),
    ),
)
