"""Offers schedules over MCP as the tools of PromptYoSelf: their names, their answers and the texts of their errors."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial, wraps
from typing import TypeVar, cast

from frontdesk.coercion import coerce_flag, optional_number, optional_text, to_text
from frontdesk.errors import FrontdeskError, Invalid, Unavailable
from frontdesk.identity.inbound import agent_id_in_metadata
from frontdesk.identity.model import AgentIdSource
from frontdesk.identity.rights import SCHEDULES_READ, SCHEDULES_WRITE
from frontdesk.operations import Answer, Call, Effect, ErrorFormat, McpPath, McpTool, NoArguments, Operation
from frontdesk.schedules.api_models import SchedulerStatusResponse
from frontdesk.schedules.model import RunStatus
from frontdesk.schedules.promptyoself_models import (
    DEFAULT_RUNS,
    AgentListOutput,
    CancelledScheduleOutput,
    ConnectionTestOutput,
    DefaultAgentInput,
    DefaultAgentOutput,
    DiagnosticsOutput,
    ExecuteInput,
    ExecutionOutput,
    ListedAgent,
    PreviewInput,
    PreviewOutput,
    RegisterInput,
    RunHistoryInput,
    RunHistoryOutput,
    RunStartedOutput,
    ScheduleCronInput,
    ScheduleEveryInput,
    ScheduleIdInput,
    ScheduleListInput,
    ScheduleListOutput,
    ScheduleOutput,
    SchedulerStatusOutput,
    ScheduleStateOutput,
    ScheduleTimeInput,
    ScopedAgentInput,
    ScopeInput,
    UpdateScheduleInput,
    UploadedToolOutput,
    UploadToolInput,
)
from frontdesk.schedules.requests import (
    DEFAULT_LIMIT,
    DEFAULT_PREVIEW,
    MAX_LOOP_SECONDS,
    ExecutedRun,
    ListRuns,
    ListSchedules,
    RuleRequest,
    ScopedDefaultAgent,
    parse_schedule_id,
)
from frontdesk.schedules.service import ScheduleService

R = TypeVar("R")
RunTool = Callable[[ScheduleService, Call, R], Awaitable[Answer]]


def with_failure_prefix(failure: str = "") -> Callable[[RunTool[R]], RunTool[R]]:
    """Report a part that does not answer as `<failure>: <reason>`, or as the reason alone, like any other mistake."""

    def decorate(run: RunTool[R]) -> RunTool[R]:
        @wraps(run)
        async def run_with_prefix(schedules: ScheduleService, call: Call, request: R) -> Answer:
            try:
                return await run(schedules, call, request)
            except Unavailable as error:
                raise FrontdeskError(
                    f"{failure}: {error.public_message}" if failure else error.public_message
                ) from error

        return run_with_prefix

    return decorate


@with_failure_prefix()
async def add_schedule(
    schedules: ScheduleService,
    call: Call,
    request: ScheduleTimeInput | ScheduleCronInput | ScheduleEveryInput | RegisterInput,
) -> Answer:
    added = await schedules.add(call.caller, request.new_schedule)
    return ScheduleOutput.of(added, f"Prompt scheduled with ID {added.schedule.id}").answer()


@with_failure_prefix("Failed to preview")
async def preview_schedule(schedules: ScheduleService, call: Call, request: PreviewInput) -> Answer:
    count, rule = optional_number(request.count, DEFAULT_PREVIEW), RuleRequest(**request.rule_fields)
    if request.schedule_id is None:
        preview = await schedules.queries.preview_rule(call.caller, rule, count)
    elif rule.is_empty:
        preview = await schedules.queries.preview(call.caller, request.schedule_id, count)
    else:
        raise Invalid("Give a schedule_id, or a rule to try, and not both")
    return PreviewOutput.model_validate(PreviewOutput.fields_of(preview)).answer()


@with_failure_prefix("Failed to cancel prompt")
async def cancel_schedule(schedules: ScheduleService, call: Call, request: ScheduleIdInput) -> Answer:
    number = (await schedules.cancel(call.caller, request.schedule_id)).id
    return CancelledScheduleOutput(cancelled_id=number, message=f"Schedule {number} cancelled").answer()


@with_failure_prefix("Failed to pause")
async def pause_schedule(schedules: ScheduleService, call: Call, request: ScheduleIdInput) -> Answer:
    schedule = await schedules.pause(call.caller, request.schedule_id)
    return ScheduleStateOutput.of(schedule, f"Schedule {schedule.id} paused").answer()


@with_failure_prefix("Failed to resume")
async def resume_schedule(schedules: ScheduleService, call: Call, request: ScheduleIdInput) -> Answer:
    resumed = await schedules.resume(call.caller, request.schedule_id)
    return ScheduleOutput.of(resumed, f"Schedule {resumed.schedule.id} resumed").answer()


@with_failure_prefix("Failed to update")
async def update_schedule(schedules: ScheduleService, call: Call, request: UpdateScheduleInput) -> Answer:
    updated = await schedules.update(call.caller, request.schedule_id, request.change)
    return ScheduleOutput.of(updated, f"Schedule {updated.schedule.id} updated").answer()


@with_failure_prefix("Failed to run")
async def run_schedule_now(schedules: ScheduleService, call: Call, request: ScheduleIdInput) -> Answer:
    delivery_id = await schedules.run_now(call.caller, request.schedule_id)
    number = parse_schedule_id(request.schedule_id)
    message = f"Schedule {number} runs now; promptyoself_history tells what came of it"
    return RunStartedOutput(id=number, delivery_id=delivery_id, message=message).answer()


EXPLICIT_SOURCES = frozenset({AgentIdSource.HEADER, AgentIdSource.PARAMETER, AgentIdSource.METADATA})


@with_failure_prefix("Failed to list prompts")
async def list_schedules(schedules: ScheduleService, call: Call, request: ScheduleListInput) -> Answer:
    filters = ListSchedules(
        # An admin may see all schedules, and with a named agent lists that agent's.
        call.caller.agent_id if call.caller.source in EXPLICIT_SOURCES else None,
        include_cancelled=coerce_flag(request.include_cancelled),
        after_id=optional_number(request.after, 0),
        limit=optional_number(request.limit, DEFAULT_LIMIT),
    )
    return ScheduleListOutput.of(await schedules.queries.list(call.caller, filters)).answer()


@with_failure_prefix("Failed to read")
async def list_runs(schedules: ScheduleService, call: Call, request: RunHistoryInput) -> Answer:
    filters = ListRuns(
        None if request.schedule_id is None else parse_schedule_id(request.schedule_id),
        standing=parse_run_status(optional_text(request.standing)),
        before=optional_text(request.before),
        limit=optional_number(request.limit, DEFAULT_RUNS),
    )
    return RunHistoryOutput.of(await schedules.queries.history(call.caller, filters)).answer()


def parse_run_status(text: str | None) -> RunStatus | None:
    if text is None:
        return None
    try:
        return RunStatus(text.lower())
    except ValueError as error:
        raise Invalid(f"'{text[:40]}' is not a standing; there are: {', '.join(RunStatus)}") from error


@with_failure_prefix("Failed to list agents")
async def list_agents(schedules: ScheduleService, call: Call, _request: NoArguments) -> Answer:
    agents = await schedules.host.agents(call.caller)
    listed = [ListedAgent(id=agent.id, name=agent.name, description=agent.description) for agent in agents]
    return AgentListOutput(agents=listed).answer()


@with_failure_prefix("Failed to test connection")
async def check_agent_host(schedules: ScheduleService, call: Call, _request: NoArguments) -> Answer:
    test = await schedules.host.test(call.caller)
    return ConnectionTestOutput(message=test.message, details=dict(test.details)).answer()


@with_failure_prefix("Upload failed")
async def upload_tool(schedules: ScheduleService, call: Call, request: UploadToolInput) -> Answer:
    name, description = optional_text(request.name), optional_text(request.description)
    tool = await schedules.host.upload_tool(call.caller, to_text(request.source_code), name, description)
    return UploadedToolOutput(tool_id=tool.tool_id, name=tool.name).answer()


@with_failure_prefix("Failed to read the status")
async def scheduler_status(schedules: ScheduleService, call: Call, _request: NoArguments) -> Answer:
    status = SchedulerStatusResponse.of(await schedules.executor.state(call.caller))
    return SchedulerStatusOutput.model_validate(status.model_dump()).answer()


@with_failure_prefix("Failed to execute prompts")
async def execute_due(schedules: ScheduleService, call: Call, request: ExecuteInput) -> Answer:
    """Run what is due, once or in a loop. A client that disconnects or cancels ends the loop; no run is lost."""
    if not coerce_flag(request.loop):
        return ExecutionOutput.of(await schedules.executor.run_due(call.caller)).answer()
    done = 0

    async def report(number: int, executed: Sequence[ExecutedRun]) -> None:
        nonlocal done
        done += len(executed)
        if call.progress is not None:
            await call.progress(number, None, f"{done} prompts executed")

    await schedules.executor.loop(
        call.caller, request.interval, optional_number(request.max_seconds, MAX_LOOP_SECONDS), report
    )
    return ExecutionOutput(message="Scheduler loop completed").answer()


# Keys of the protocol itself say nothing about the caller.
PROTOCOL_PREFIX = "io.modelcontextprotocol/"
MAX_KEYS = 50
ENVIRONMENT = "env"


@with_failure_prefix("Failed to diagnose")
async def diagnose_inference(schedules: ScheduleService, call: Call, _request: NoArguments) -> Answer:
    inferred = await schedules.defaults.infer(call.caller)
    debug = {"source": ENVIRONMENT if inferred.source == AgentIdSource.ENVIRONMENT else inferred.source}
    key = inferred.key
    if inferred.source == AgentIdSource.METADATA:
        named = agent_id_in_metadata(call.metadata)
        key = named[0] if named else None
    return DiagnosticsOutput(
        ctx_present=True,
        ctx_metadata_keys=list(metadata_keys(call.metadata))[:MAX_KEYS],
        env=dict(inferred.environment),
        single_agent_fallback_enabled=inferred.single_agent_fallback,
        inferred_agent_id=inferred.agent_id,
        inference_debug=debug
        | ({"key": key} if key else {})
        | ({"error": call.ignored_agent_id} if call.ignored_agent_id else {}),
    ).answer()


def metadata_keys(metadata: Mapping[str, object]) -> Iterator[str]:
    """The keys of a client's own metadata, without those of the protocol."""
    for name, value in metadata.items():
        if name == "metadata" and isinstance(value, Mapping):
            yield from (str(key) for key in cast("Mapping[object, object]", value))
        elif name != "progressToken" and not name.startswith(PROTOCOL_PREFIX):
            yield name


@with_failure_prefix("Failed to set the default agent")
async def set_default_agent(schedules: ScheduleService, call: Call, request: DefaultAgentInput) -> Answer:
    agent_id = optional_text(request.agent_id)
    return _default_agent_answer(await schedules.defaults.set_for_everybody(call.caller, agent_id))


@with_failure_prefix("Failed to set the default agent")
async def set_scoped_default_agent(schedules: ScheduleService, call: Call, request: ScopedAgentInput) -> Answer:
    agent_id, scope = optional_text(request.agent_id), optional_text(request.scope)
    return _default_agent_answer(await schedules.defaults.set(call.caller, agent_id, scope))


@with_failure_prefix("Failed to read the default agent")
async def get_scoped_default_agent(schedules: ScheduleService, call: Call, request: ScopeInput) -> Answer:
    return _default_agent_answer(await schedules.defaults.get(call.caller, optional_text(request.scope)))


def _default_agent_answer(default: ScopedDefaultAgent) -> Answer:
    scope = f"the scope '{default.scope}'" if default.scope else "everybody"
    message = f"Default agent of {scope}: {default.agent_id or 'none'}"
    return DefaultAgentOutput(scope=default.scope, agent_id=default.agent_id, message=message).answer()


# Agents on a Letta server get only the tools that they need to schedule for themselves, since every tool costs
# attention; the others are for clients.
ContractTool = partial(McpTool, path=McpPath.SCHEDULE, error_format=ErrorFormat.ANSWER, handed_to_agents=False)
# Tools that PromptYoSelf does not have mark their errors as errors, which models heed.
AddedTool = partial(McpTool, path=McpPath.SCHEDULE, error_format=ErrorFormat.RESULT, handed_to_agents=False)

SCHEDULE_BY_KIND = (
    Operation(
        name="schedule_once",
        summary="Make a schedule that fires once",
        request=ScheduleTimeInput,
        run=add_schedule,
        scopes=(SCHEDULES_WRITE,),
        effect=Effect.ADDS,
        mcp=ContractTool(
            name="promptyoself_schedule_time",
            title="Schedule once",
            description=(
                "Schedule a message to yourself, once, at a certain time: a reminder, a check, the next step of "
                "something long. At that time you are prompted with it, whether anybody talks with you or not. Plain "
                'words are fine for the time. Example: {"prompt": "Ask Ann how the interview went", "time": "tomorrow '
                'at 9 Berlin time"}, or "time": "2025-12-25T10:00:00Z". The answer repeats the exact time; check it. '
                "It comes once: for something that repeats use promptyoself_schedule_cron or "
                "promptyoself_schedule_every."
            ),
            response=ScheduleOutput,
            handed_to_agents=True,
        ),
    ),
    Operation(
        name="schedule_by_cron",
        summary="Make a schedule by a cron rule",
        request=ScheduleCronInput,
        run=add_schedule,
        scopes=(SCHEDULES_WRITE,),
        effect=Effect.ADDS,
        mcp=ContractTool(
            name="promptyoself_schedule_cron",
            title="Schedule by cron",
            description=(
                "Schedule a message to yourself that repeats by the calendar: every day at nine, on weekdays, on the "
                'first of the month. A cron rule of five fields, or plain words. Example: {"prompt": "Write the daily '
                'report", "cron": "0 9 * * MON-FRI", "zone": "Europe/Berlin"}, or "cron": "every weekday at 9 Berlin '
                'time". The answer repeats the exact rule; check it. Make it once: it repeats by itself until it is '
                "cancelled."
            ),
            response=ScheduleOutput,
            handed_to_agents=True,
        ),
    ),
    Operation(
        name="schedule_at_intervals",
        summary="Make a schedule at an interval",
        request=ScheduleEveryInput,
        run=add_schedule,
        scopes=(SCHEDULES_WRITE,),
        effect=Effect.ADDS,
        mcp=ContractTool(
            name="promptyoself_schedule_every",
            title="Schedule at intervals",
            description=(
                "Schedule a message to yourself at a steady interval: every 30 seconds, five minutes, two hours. "
                'Example: {"prompt": "Focus check", "every": "30m", "max_repetitions": 10}. With max_repetitions 1 it '
                'is a simple timer: {"prompt": "Ping me in two minutes", "every": "2m", "max_repetitions": 1}. Plain '
                "words are fine. Make it once: it repeats by itself until it is cancelled."
            ),
            response=ScheduleOutput,
            handed_to_agents=True,
        ),
    ),
)

# The tools of operations that the HTTP API offers too.
REGISTER = ContractTool(
    name="promptyoself_register",
    title="Schedule by any rule",
    description=(
        "Schedule a message to yourself by any kind of rule, with every option there is: give exactly one of time "
        "(once), cron (by the calendar) and every (at an interval), each as a rule or in plain words. Example: "
        '{"prompt": "Daily report", "cron": "0 9 * * *", "misfire": "skip"}. Where no option is needed, '
        "promptyoself_schedule_time, promptyoself_schedule_cron and promptyoself_schedule_every are simpler."
    ),
    request=RegisterInput,
    response=ScheduleOutput,
    run=add_schedule,
)
LIST = ContractTool(
    name="promptyoself_list",
    title="List schedules",
    description=(
        "List the prompts you have scheduled for yourself: what you will be told, by which rule, and when next. "
        "Use it before you schedule something that may be there already, and to find the number of a schedule."
    ),
    request=ScheduleListInput,
    response=ScheduleListOutput,
    run=list_schedules,
    handed_to_agents=True,
)
CANCEL = ContractTool(
    name="promptyoself_cancel",
    title="Cancel a schedule",
    description=(
        "Cancel a schedule for good, by its number; promptyoself_list shows the numbers. Nothing of it starts any "
        'more. Example: {"schedule_id": 42}. To stop it for a while use promptyoself_pause.'
    ),
    request=ScheduleIdInput,
    response=CancelledScheduleOutput,
    run=cancel_schedule,
    handed_to_agents=True,
)
PAUSE = AddedTool(
    name="promptyoself_pause",
    title="Pause a schedule",
    description='Stop a schedule for a while; promptyoself_resume goes on with it. Example: {"schedule_id": 42}.',
    request=ScheduleIdInput,
    response=ScheduleStateOutput,
    run=pause_schedule,
)
RESUME = AddedTool(
    name="promptyoself_resume",
    title="Resume a schedule",
    description=(
        "Go on with a schedule that was paused, from its next time on; what fell into the pause is left out, except "
        'for a prompt that comes once and is overdue: that one comes at once. Example: {"schedule_id": 42}.'
    ),
    request=ScheduleIdInput,
    response=ScheduleOutput,
    run=resume_schedule,
)
UPDATE = AddedTool(
    name="promptyoself_update",
    title="Change a schedule",
    description=(
        "Change a schedule in place: its text, its rule, its limits. What you leave out stays as it is. "
        'Example: {"schedule_id": 42, "cron": "every weekday at 10 Berlin time"}.'
    ),
    request=UpdateScheduleInput,
    response=ScheduleOutput,
    run=update_schedule,
    handed_to_agents=True,
)
RUN_NOW = AddedTool(
    name="promptyoself_run_now",
    title="Run now",
    description=(
        "Run a schedule once right now, besides its rule; its next time stays as it is. "
        'Example: {"schedule_id": 42}. promptyoself_history tells what came of it.'
    ),
    request=ScheduleIdInput,
    response=RunStartedOutput,
    run=run_schedule_now,
)
HISTORY = AddedTool(
    name="promptyoself_history",
    title="Past runs",
    description=(
        "What became of past runs, the newest first: delivered, waiting for another try, skipped and why, or dead "
        '(given up), with each attempt and your answer. Example: {"schedule_id": 42, "limit": 5}.'
    ),
    request=RunHistoryInput,
    response=RunHistoryOutput,
    run=list_runs,
    handed_to_agents=True,
)
PREVIEW = AddedTool(
    name="promptyoself_preview",
    title="Next times",
    description=(
        "The next times at which a schedule, or a rule that you want to try, would fire; nothing is made. "
        'Example: {"cron": "every weekday at 9 Berlin time", "count": 3}, or {"schedule_id": 42}.'
    ),
    request=PreviewInput,
    response=PreviewOutput,
    run=preview_schedule,
    handed_to_agents=True,
)
STATUS = ContractTool(
    name="promptyoself_executor_status",
    title="Scheduler status",
    description="Whether the scheduler runs here, how much it has under way, what waits, and what it gave up.",
    response=SchedulerStatusOutput,
    run=scheduler_status,
)

EXECUTE = Operation(
    name="execute_due",
    summary="Run the prompts that are due now, once or in a loop",
    request=ExecuteInput,
    run=execute_due,
    scopes=(SCHEDULES_WRITE,),
    effect=Effect.ADDS,
    mcp=ContractTool(
        name="promptyoself_execute",
        title="Run what is due",
        description=(
            "Run prompts that are due right now and wait for the outcome; your own come when your present turn has "
            'ended. Not needed as a rule: Frontdesk runs them by itself, on time. {"loop": true, "interval": 60} looks '
            "again every 60 seconds for a while, reports progress, and ends when the call is cancelled."
        ),
        response=ExecutionOutput,
    ),
)

HOST_AND_DEFAULT_AGENTS = (
    Operation(
        name="test_agent_host",
        summary="Whether the server that hosts the agents answers",
        request=NoArguments,
        run=check_agent_host,
        scopes=(SCHEDULES_READ,),
        mcp=ContractTool(
            name="promptyoself_test",
            title="Test the agent host",
            description="Whether the server that hosts the agents answers.",
            response=ConnectionTestOutput,
        ),
    ),
    Operation(
        name="list_schedulable_agents",
        summary="The agents that prompts can be scheduled for",
        request=NoArguments,
        run=list_agents,
        scopes=(SCHEDULES_READ,),
        mcp=ContractTool(
            name="promptyoself_agents",
            title="List agents",
            description="The agents that prompts can be scheduled for, with their ids.",
            response=AgentListOutput,
        ),
    ),
    Operation(
        name="upload_tool",
        summary="Give the Letta server a new tool",
        request=UploadToolInput,
        run=upload_tool,
        scopes=(SCHEDULES_WRITE,),
        effect=Effect.CHANGES,
        mcp=ContractTool(
            name="promptyoself_upload",
            title="Upload a tool",
            description=(
                "Give the Letta server a new tool, as the whole Python source of one function with type hints and a "
                "docstring. For the operator: it runs on that server."
            ),
            response=UploadedToolOutput,
        ),
    ),
    Operation(
        name="diagnose_inference",
        summary="Which agent a schedule would be for, and how that was found out",
        request=NoArguments,
        run=diagnose_inference,
        scopes=(SCHEDULES_READ,),
        mcp=ContractTool(
            name="promptyoself_inference_diagnostics",
            title="Which agent",
            description=(
                "Which agent a schedule would be for when you name none, and how that was found out. "
                'Use it after "agent_id is required and could not be inferred".'
            ),
            response=DiagnosticsOutput,
            accepts_any_agent_id=True,
        ),
    ),
    Operation(
        name="set_default_agent",
        summary="Set the agent that stands in for everybody whose calls name none",
        request=DefaultAgentInput,
        run=set_default_agent,
        scopes=(SCHEDULES_WRITE,),
        effect=Effect.CHANGES,
        mcp=ContractTool(
            name="promptyoself_set_default_agent",
            title="Set everybody's default agent",
            description=("Set the agent that stands in for everybody whose calls name none. For the operator alone."),
            response=DefaultAgentOutput,
            for_agent=False,
        ),
    ),
    Operation(
        name="set_scoped_default_agent",
        summary="Set the agent that stands in when the caller's own calls name none",
        request=ScopedAgentInput,
        run=set_scoped_default_agent,
        scopes=(SCHEDULES_WRITE,),
        effect=Effect.CHANGES,
        mcp=ContractTool(
            name="promptyoself_set_scoped_default_agent",
            title="Set your default agent",
            description=(
                'Set the agent that stands in when your own calls name none. Example: {"agent_id": "agent-123"}.'
            ),
            response=DefaultAgentOutput,
            for_agent=False,
        ),
    ),
    Operation(
        name="get_scoped_default_agent",
        summary="The agent that stands in when the caller's own calls name none",
        request=ScopeInput,
        run=get_scoped_default_agent,
        scopes=(SCHEDULES_READ,),
        mcp=ContractTool(
            name="promptyoself_get_scoped_default_agent",
            title="Your default agent",
            description="The agent that stands in when your own calls name none, if one was set.",
            response=DefaultAgentOutput,
        ),
    ),
)
