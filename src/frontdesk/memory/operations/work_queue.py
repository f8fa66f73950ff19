"""Defines the tools for the work queue of agents."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import Field

from frontdesk.memory.model import AiMode, AiStatus, AiTask, AiTaskType, Guardrails, PersonScope, Priority
from frontdesk.memory.operations.base import (
    ADDS_HINTS,
    MAX_LINE,
    Dollars,
    EmptyRequest,
    IdText,
    JsonMetadata,
    LongText,
    MemoryRequest,
    MemoryTool,
    MemoryToolResult,
    Minutes,
    PagedRequest,
    RecordIdRequest,
    ShortText,
    SortOrder,
    Tags,
    TimeText,
    ToolAnswer,
    format_count,
    format_counts,
    format_minutes,
    format_page,
    format_time,
    join_lines,
    join_parts,
    labelled_text,
    person_zone,
)
from frontdesk.memory.service import RecordServices
from frontdesk.memory.work_queue_rules import AiTaskFilter, AiTaskStats
from frontdesk.text import one_line

AgentId = Annotated[str, Field(min_length=1, max_length=128)]
Logs = Annotated[list[LongText], Field(max_length=1000)]


class Artifact(MemoryRequest):
    """A result of the work."""

    type: ShortText
    name: ShortText
    content: Any = None


class ExecutionResult(MemoryRequest):
    """The end of a piece of work."""

    output: LongText | None = None
    artifacts: list[Artifact] | None = Field(None, max_length=100)
    logs: Logs | None = None
    metrics: JsonMetadata | None = None


class GetAiTasks(PagedRequest):
    """Filters of pieces of work."""

    agent_id: ShortText | None = None
    agent_name: ShortText | None = None
    status: AiStatus | None = None
    mode: AiMode | None = None
    task_type: AiTaskType | None = None
    sort_by: Literal["assigned_at", "due_at", "priority", "updated_at"] = "assigned_at"
    sort_order: SortOrder = "desc"
    is_local_task: bool | None = None
    executor_workspace_id: ShortText | None = None


class GetQueuedTasks(MemoryRequest):
    """The agent."""

    agent_name: ShortText = Field(min_length=1, description="The agent's name or id.")


class AcceptAiTask(MemoryRequest):
    """A piece of work, with an estimate of cost and time."""

    id: IdText
    estimated_cost_usd: Dollars | None = None
    estimated_duration_min: Minutes | None = None


class UpdateAiTask(MemoryRequest):
    """The progress of a piece of work."""

    id: IdText
    status: Literal["in_progress", "completed", "failed", "paused"] | None = None
    progress_message: LongText | None = None
    error_message: LongText | None = None
    execution_result: ExecutionResult | None = None
    actual_cost_usd: Dollars | None = None
    actual_duration_min: Minutes | None = None


class CompleteAiTask(MemoryRequest):
    """The result of a piece of work."""

    id: IdText
    output: LongText | None = None
    artifacts: list[Artifact] | None = Field(None, max_length=100)
    logs: Logs | None = None
    metrics: JsonMetadata | None = None
    actual_cost_usd: Dollars | None = None
    actual_duration_min: Minutes | None = None


class FailAiTask(MemoryRequest):
    """Why a piece of work failed."""

    id: IdText
    error_message: LongText = Field(min_length=1)


class GuardrailFields(MemoryRequest):
    """The limits of an agent; the names are those of the contract."""

    costCapUSD: Dollars | None = None  # noqa: N815
    timeCapMin: Minutes | None = None  # noqa: N815
    requiresHumanApproval: bool | None = None  # noqa: N815
    dataScopes: Tags | None = None  # noqa: N815


class AiTaskContentFields(MemoryRequest):
    """The other fields of a piece of work."""

    agent_name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    deliverables: LongText | None = None
    context: LongText | None = None
    acceptance_criteria: LongText | None = None
    dependencies: list[IdText] | None = Field(
        None, max_length=100, description="AI tasks that must be completed first."
    )
    mode: AiMode | None = None
    guardrails: GuardrailFields | None = None
    metadata: JsonMetadata | None = None
    status: AiStatus | None = None
    priority: Priority | None = None
    estimated_cost_usd: Dollars | None = None
    estimated_duration_min: Minutes | None = None
    is_local_task: bool | None = None
    executor_workspace_id: Annotated[str, Field(max_length=128)] | None = None
    due_at: TimeText | None = None


class NewAiTaskContent(AiTaskContentFields):
    """A new piece of work as apps write it."""

    objective: LongText = Field(min_length=1, examples=["Compare three hotels near the station"])
    task_type: AiTaskType
    task_id: IdText = Field(description="The task that it belongs to.")
    agent_id: AgentId = Field(description="The agent that it is for; the caller is known by other means.")


class AiTaskContent(AiTaskContentFields):
    """Changes of a piece of work and its results as apps write them; null removes a value."""

    objective: LongText | None = Field(None, min_length=1, examples=["Compare three hotels near the station"])
    task_type: AiTaskType | None = None
    task_id: IdText | None = None
    agent_id: AgentId | None = None
    progress_message: LongText | None = None
    error_message: LongText | None = None
    execution_result: ExecutionResult | None = None
    actual_cost_usd: Dollars | None = None
    actual_duration_min: Minutes | None = None


MAX_STEPS = 5
MAX_RESULT = 4000


def format_work_line(work: AiTask, zone: ZoneInfo) -> str:
    """A piece of work on one line, with the id that other tools ask for."""
    return f"- {one_line(work.objective, MAX_LINE)} (id {work.id}): {_format_status(work, zone)}"


def format_work(work: AiTask, zone: ZoneInfo) -> str:
    """A piece of work with everything that an agent needs to do it."""
    return join_lines(
        format_work_line(work, zone).removeprefix("- "),
        labelled_text("Objective", "" if one_line(work.objective, MAX_LINE) == work.objective else work.objective),
        labelled_text("Deliverables", work.deliverables),
        labelled_text("Context", work.context),
        labelled_text("Acceptance criteria", work.acceptance_criteria),
        f"For task {work.task_id}",
        f"After {', '.join(work.dependencies)}" if work.dependencies else "",
        _format_limits(work.guardrails),
        _format_holder(work, zone),
        labelled_text("Progress", work.progress_message),
        labelled_text("Error", work.error_message),
        labelled_text("Result", _shorten(json.dumps(work.execution_result, ensure_ascii=False)))
        if work.execution_result
        else "",
        _format_history(work, zone),
    )


def format_waiting(waiting: Sequence[AiTask], zone: ZoneInfo, *, more: bool) -> str:
    """The work that waits for an agent, the oldest first."""
    if not waiting:
        return "Nothing waits for this agent."
    head = f"The oldest {len(waiting)} of what waits, there is more:" if more else f"{len(waiting)} waiting:"
    return join_lines(head, *(format_work_line(work, zone) for work in waiting))


def _format_status(work: AiTask, zone: ZoneInfo) -> str:
    return join_parts(
        [
            work.status.replace("_", " "),
            f"{work.priority} priority",
            f"for {work.agent_name or work.agent_id}",
            work.task_type.replace("_", " "),
            f"mode {work.mode}",
            f"due {format_time(work.due_at, zone)}" if work.due_at else "",
        ]
    )


def _format_limits(rails: Guardrails) -> str:
    said = join_parts(
        [
            f"at most ${rails.costCapUSD:g}" if rails.costCapUSD is not None else "",
            f"at most {format_minutes(rails.timeCapMin)}" if rails.timeCapMin is not None else "",
            "to be executed only once the person approves" if rails.requiresHumanApproval else "",
            f"data {'/'.join(rails.dataScopes)}" if rails.dataScopes else "",
        ]
    )
    return f"Limits: {said}" if said else ""


def _format_holder(work: AiTask, zone: ZoneInfo) -> str:
    if work.leased_by is None or work.leased_until is None:
        return ""
    return f"Taken by {work.leased_by} until {format_time(work.leased_until, zone)}; each update of it keeps it longer"


def _format_history(work: AiTask, zone: ZoneInfo) -> str:
    steps = [
        f"{format_time(step.at, zone)} {step.to_status}{f' by {step.by_agent}' if step.by_agent else ''}"
        for step in work.history[-MAX_STEPS:]
    ]
    return f"History: {'; '.join(steps)}" if steps else ""


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_RESULT else f"{text[:MAX_RESULT]}… (the structured answer has it all)"


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


async def list_work_tool(services: RecordServices, scope: PersonScope, given: GetAiTasks) -> MemoryToolResult:
    wanted = AiTaskFilter(**given.provided("limit", "offset"), limit=given.limit, offset=given.offset)
    page = await services.work_queue.list(scope, wanted)
    zone = await person_zone(services, scope)
    text = format_page(page, partial(format_work_line, zone=zone), "piece of work", "pieces of work", none=NO_WORK)
    answer = AiTasksAnswer(ai_tasks=page.items, total=page.total, offset=page.offset, has_more=page.has_more)
    return MemoryToolResult(text, answer)


async def waiting_work_tool(services: RecordServices, scope: PersonScope, given: GetQueuedTasks) -> MemoryToolResult:
    waiting = await services.work_queue.list_waiting(scope, given.agent_name, MAX_WAITING + 1)
    answer = WaitingAnswer(ai_tasks=waiting[:MAX_WAITING], has_more=len(waiting) > MAX_WAITING)
    return MemoryToolResult(
        format_waiting(answer.ai_tasks, await person_zone(services, scope), more=answer.has_more), answer
    )


async def get_work_tool(services: RecordServices, scope: PersonScope, request: RecordIdRequest) -> MemoryToolResult:
    work = await services.work_queue.get(scope, request.id)
    return await _work_result(services, scope, work, "")


async def accept_work_tool(services: RecordServices, scope: PersonScope, given: AcceptAiTask) -> MemoryToolResult:
    work = await services.work_queue.accept(scope, given.id, given.estimated_cost_usd, given.estimated_duration_min)
    return await _work_result(services, scope, work, "It is yours now.")


async def report_work_tool(services: RecordServices, scope: PersonScope, given: UpdateAiTask) -> MemoryToolResult:
    status = AiStatus(given.status) if given.status else None
    work = await services.work_queue.report(scope, given.id, status, given.provided("id", "status"))
    return await _work_result(services, scope, work, "Noted.")


async def complete_work_tool(services: RecordServices, scope: PersonScope, given: CompleteAiTask) -> MemoryToolResult:
    work = await services.work_queue.complete(scope, given.id, given.provided("id"))
    return await _work_result(services, scope, work, "Completed.")


async def fail_work_tool(services: RecordServices, scope: PersonScope, given: FailAiTask) -> MemoryToolResult:
    work = await services.work_queue.fail(scope, given.id, given.error_message)
    return await _work_result(services, scope, work, "Noted that it failed.")


async def work_stats_tool(services: RecordServices, scope: PersonScope, _given: EmptyRequest) -> MemoryToolResult:
    found = await services.work_queue.stats(scope)
    text = join_lines(
        f"{format_count(found.total, 'piece', 'pieces')} of work: {found.active:,} active, "
        f"{found.completed:,} completed, "
        f"{found.failed:,} failed; {found.overdue:,} overdue",
        format_counts("By status", found.by_status),
        format_counts("By mode", found.by_mode),
        format_counts("By type", found.by_type),
        format_counts("By agent", found.by_agent),
        join_parts(
            [
                f"{100 * found.success_rate:g}% of what ended was completed",
                f"{format_minutes(round(found.avg_duration_min))} on average" if found.avg_duration_min else "",
                f"${found.avg_cost_usd:g} a piece" if found.avg_cost_usd is not None else "",
                f"${found.total_cost_usd:g} spent",
            ]
        ),
    )
    return MemoryToolResult(text, AiTaskStatsAnswer(stats=found))


async def _work_result(services: RecordServices, scope: PersonScope, work: AiTask, first: str) -> MemoryToolResult:
    zone = await person_zone(services, scope)
    return MemoryToolResult(join_lines(first, format_work(work, zone)), AiTaskAnswer(ai_task=work))


WORK_QUEUE_TOOLS: tuple[MemoryTool, ...] = (
    MemoryTool("get_ai_tasks", "List agents' work", LIST_WORK, GetAiTasks, AiTasksAnswer, list_work_tool),
    MemoryTool(
        "get_queued_tasks_for_agent",
        "What waits for an agent",
        LIST_WAITING,
        GetQueuedTasks,
        WaitingAnswer,
        waiting_work_tool,
    ),
    MemoryTool("get_ai_task", "Look at a piece of work", GET_WORK, RecordIdRequest, AiTaskAnswer, get_work_tool),
    MemoryTool(
        "accept_ai_task",
        "Take a piece of work",
        ACCEPT_WORK,
        AcceptAiTask,
        AiTaskAnswer,
        accept_work_tool,
        **ADDS_HINTS,
    ),
    MemoryTool(
        "update_ai_task", "Report on work", REPORT_WORK, UpdateAiTask, AiTaskAnswer, report_work_tool, **ADDS_HINTS
    ),
    MemoryTool(
        "complete_ai_task",
        "Complete work",
        COMPLETE_WORK,
        CompleteAiTask,
        AiTaskAnswer,
        complete_work_tool,
        **ADDS_HINTS,
    ),
    MemoryTool(
        "fail_ai_task", "Give work back as failed", FAIL_WORK, FailAiTask, AiTaskAnswer, fail_work_tool, **ADDS_HINTS
    ),
    MemoryTool(
        "get_ai_task_stats", "Agents' work in figures", GET_WORK_STATS, EmptyRequest, AiTaskStatsAnswer, work_stats_tool
    ),
)
