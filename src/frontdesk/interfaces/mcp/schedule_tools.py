"""Offers the schedule tools, named as in PromptYoSelf, with their descriptions for models."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, cast

from frontdesk.app import App, McpPath
from frontdesk.coercion import coerce_flag
from frontdesk.errors import FrontdeskError, Invalid, Unavailable
from frontdesk.identity.inbound import agent_id_in_metadata
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.interfaces.mcp.context import CallContext
from frontdesk.interfaces.mcp.schedule_models import (
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
    ScheduleToolOutput,
    ScopedAgentInput,
    ScopeInput,
    UpdateScheduleInput,
    UploadedToolOutput,
    UploadToolInput,
    optional_number,
    optional_text,
    to_text,
)
from frontdesk.interfaces.mcp.tool_spec import ErrorFormat, McpToolInput, McpToolResult, NoArguments, ToolSpec
from frontdesk.interfaces.responses import SchedulerStatusResponse
from frontdesk.schedules.model import RunStatus
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

P = ParamSpec("P")


def with_failure_prefix(
    failure: str, run: Callable[P, Awaitable[McpToolResult]]
) -> Callable[P, Awaitable[McpToolResult]]:
    """The handler, whose error is `<failure>: <reason>`, or the reason alone, where something is unavailable."""

    async def run_with_prefix(*given: P.args, **named: P.kwargs) -> McpToolResult:
        try:
            return await run(*given, **named)
        except Unavailable as error:
            raise FrontdeskError(f"{failure}: {error.public_message}" if failure else error.public_message) from error

    return run_with_prefix


async def add_schedule(
    app: App, caller: Caller, given: ScheduleTimeInput | ScheduleCronInput | ScheduleEveryInput | RegisterInput
) -> McpToolResult:
    added = await app.schedules.add(caller, given.new_schedule)
    return ScheduleOutput.of(added, f"Prompt scheduled with ID {added.schedule.id}").result()


async def preview_schedule(app: App, caller: Caller, request: PreviewInput) -> McpToolResult:
    count, rule = optional_number(request.count, DEFAULT_PREVIEW), RuleRequest(**request.rule_fields)
    if request.schedule_id is None:
        found = await app.schedules.queries.preview_rule(caller, rule, count)
    elif rule.is_empty:
        found = await app.schedules.queries.preview(caller, request.schedule_id, count)
    else:
        raise Invalid("Give a schedule_id, or a rule to try, and not both")
    return PreviewOutput.model_validate(PreviewOutput.fields_of(found)).result()


async def cancel_schedule(app: App, caller: Caller, request: ScheduleIdInput) -> McpToolResult:
    number = (await app.schedules.cancel(caller, request.schedule_id)).id
    return CancelledScheduleOutput(cancelled_id=number, message=f"Schedule {number} cancelled").result()


async def pause_schedule(app: App, caller: Caller, request: ScheduleIdInput) -> McpToolResult:
    schedule = await app.schedules.pause(caller, request.schedule_id)
    return ScheduleStateOutput.of(schedule, f"Schedule {schedule.id} paused").result()


async def resume_schedule(app: App, caller: Caller, request: ScheduleIdInput) -> McpToolResult:
    added = await app.schedules.resume(caller, request.schedule_id)
    return ScheduleOutput.of(added, f"Schedule {added.schedule.id} resumed").result()


async def update_schedule(app: App, caller: Caller, request: UpdateScheduleInput) -> McpToolResult:
    added = await app.schedules.update(caller, request.schedule_id, request.change)
    return ScheduleOutput.of(added, f"Schedule {added.schedule.id} updated").result()


async def run_schedule_now(app: App, caller: Caller, request: ScheduleIdInput) -> McpToolResult:
    delivery_id, number = (
        await app.schedules.run_now(caller, request.schedule_id),
        parse_schedule_id(request.schedule_id),
    )
    message = f"Schedule {number} runs now; promptyoself_history tells what came of it"
    return RunStartedOutput(id=number, delivery_id=delivery_id, message=message).result()


EXPLICIT_SOURCES = frozenset({AgentIdSource.HEADER, AgentIdSource.PARAMETER, AgentIdSource.METADATA})


async def list_schedules(app: App, caller: Caller, request: ScheduleListInput) -> McpToolResult:
    wanted = ListSchedules(
        # An admin may see all schedules, and with a named agent lists that agent's.
        caller.agent_id if caller.source in EXPLICIT_SOURCES else None,
        include_cancelled=coerce_flag(request.include_cancelled),
        after_id=optional_number(request.after, 0),
        limit=optional_number(request.limit, DEFAULT_LIMIT),
    )
    listed = await app.schedules.queries.list(caller, wanted)
    return ScheduleListOutput.of(listed).result()


async def list_runs(app: App, caller: Caller, request: RunHistoryInput) -> McpToolResult:
    wanted = ListRuns(
        None if request.schedule_id is None else parse_schedule_id(request.schedule_id),
        standing=parse_run_status(optional_text(request.standing)),
        before=optional_text(request.before),
        limit=optional_number(request.limit, DEFAULT_RUNS),
    )
    return RunHistoryOutput.of(await app.schedules.queries.history(caller, wanted)).result()


def parse_run_status(text: str | None) -> RunStatus | None:
    if text is None:
        return None
    try:
        return RunStatus(text.lower())
    except ValueError as error:
        raise Invalid(f"'{text[:40]}' is not a standing; there are: {', '.join(RunStatus)}") from error


async def list_agents(app: App, caller: Caller, _given: NoArguments) -> McpToolResult:
    found = await app.schedules.host.agents(caller)
    listed = [ListedAgent(id=one.id, name=one.name, description=one.description) for one in found]
    return AgentListOutput(agents=listed).result()


async def check_agent_host(app: App, caller: Caller, _given: NoArguments) -> McpToolResult:
    found = await app.schedules.host.test(caller)
    return ConnectionTestOutput(message=found.message, details=dict(found.details)).result()


async def upload_tool(app: App, caller: Caller, request: UploadToolInput) -> McpToolResult:
    name, about = optional_text(request.name), optional_text(request.description)
    done = await app.schedules.host.upload_tool(caller, to_text(request.source_code), name, about)
    return UploadedToolOutput(tool_id=done.tool_id, name=done.name).result()


async def scheduler_status(app: App, caller: Caller, _given: NoArguments) -> McpToolResult:
    found = SchedulerStatusResponse.of(await app.schedules.executor.state(caller))
    return SchedulerStatusOutput.model_validate(found.model_dump()).result()


async def execute_due(app: App, caller: Caller, request: ExecuteInput, line: CallContext) -> McpToolResult:
    """Run what is due, once or in a loop. A client that disconnects or cancels ends the loop; no run is lost."""
    if not coerce_flag(request.loop):
        return ExecutionOutput.of(await app.schedules.executor.run_due(caller)).result()
    done = 0

    async def report(number: int, executed: Sequence[ExecutedRun]) -> None:
        nonlocal done
        done += len(executed)
        if line.progress is not None:
            await line.progress(number, None, f"{done} prompts executed")

    await app.schedules.executor.loop(
        caller, request.interval, optional_number(request.max_seconds, MAX_LOOP_SECONDS), report
    )
    return ExecutionOutput(message="Scheduler loop completed").result()


# Keys of the protocol itself say nothing about the caller.
PROTOCOL_PREFIX = "io.modelcontextprotocol/"
MAX_KEYS = 50
ENVIRONMENT = "env"


async def diagnose_inference(app: App, caller: Caller, _given: NoArguments, line: CallContext) -> McpToolResult:
    found = await app.schedules.defaults.infer(caller)
    debug = {"source": ENVIRONMENT if found.source == AgentIdSource.ENVIRONMENT else found.source}
    key = found.key
    if found.source == AgentIdSource.METADATA:
        named = agent_id_in_metadata(line.metadata)
        key = named[0] if named else None
    return DiagnosticsOutput(
        ctx_present=True,
        ctx_metadata_keys=list(metadata_keys(line.metadata))[:MAX_KEYS],
        env=dict(found.environment),
        single_agent_fallback_enabled=found.single_agent_fallback,
        inferred_agent_id=found.agent_id,
        inference_debug=debug
        | ({"key": key} if key else {})
        | ({"error": wrong} if (wrong := line.ignored_agent_id) else {}),
    ).result()


def metadata_keys(metadata: Mapping[str, object]) -> Iterator[str]:
    """The keys of a client's own metadata, without those of the protocol."""
    for name, value in metadata.items():
        if name == "metadata" and isinstance(value, Mapping):
            yield from (str(key) for key in cast("Mapping[object, object]", value))
        elif name != "progressToken" and not name.startswith(PROTOCOL_PREFIX):
            yield name


async def set_default_agent(app: App, caller: Caller, request: DefaultAgentInput) -> McpToolResult:
    return _default_agent_output(
        await app.schedules.defaults.set_for_everybody(caller, optional_text(request.agent_id))
    ).result()


async def set_scoped_default_agent(app: App, caller: Caller, request: ScopedAgentInput) -> McpToolResult:
    return _default_agent_output(
        await app.schedules.defaults.set(caller, optional_text(request.agent_id), optional_text(request.scope))
    ).result()


async def get_scoped_default_agent(app: App, caller: Caller, request: ScopeInput) -> McpToolResult:
    return _default_agent_output(await app.schedules.defaults.get(caller, optional_text(request.scope))).result()


def _default_agent_output(found: ScopedDefaultAgent) -> DefaultAgentOutput:
    scope = f"the scope '{found.scope}'" if found.scope else "everybody"
    message = f"Default agent of {scope}: {found.agent_id or 'none'}"
    return DefaultAgentOutput(scope=found.scope, agent_id=found.agent_id, message=message)


LIST_DESCRIPTION = (
    "List the prompts you have scheduled for yourself: what you will be told, by which rule, and when next. "
    "Use it before you schedule something that may be there already, and to find the number of a schedule."
)
TIME_DESCRIPTION = (
    "Schedule a message to yourself, once, at a certain time: a reminder, a check, the next step of something long. "
    "At that time you are prompted with it, whether anybody talks with you or not. Plain words are fine for the time. "
    'Example: {"prompt": "Ask Ann how the interview went", "time": "tomorrow at 9 Berlin time"}, or '
    '"time": "2025-12-25T10:00:00Z". The answer repeats the exact time; check it. It comes once: for something that '
    "repeats use promptyoself_schedule_cron or promptyoself_schedule_every."
)
CRON_DESCRIPTION = (
    "Schedule a message to yourself that repeats by the calendar: every day at nine, on weekdays, on the first of the "
    'month. A cron rule of five fields, or plain words. Example: {"prompt": "Write the daily report", '
    '"cron": "0 9 * * MON-FRI", "zone": "Europe/Berlin"}, or "cron": "every weekday at 9 Berlin time". The answer '
    "repeats the exact rule; check it. Make it once: it repeats by itself until it is cancelled."
)
EVERY_DESCRIPTION = (
    "Schedule a message to yourself at a steady interval: every 30 seconds, five minutes, two hours. "
    'Example: {"prompt": "Focus check", "every": "30m", "max_repetitions": 10}. With max_repetitions 1 it is a simple '
    'timer: {"prompt": "Ping me in two minutes", "every": "2m", "max_repetitions": 1}. Plain words are fine. Make it '
    "once: it repeats by itself until it is cancelled."
)
REGISTER_DESCRIPTION = (
    "Schedule a message to yourself by any kind of rule, with every option there is: give exactly one of time (once), "
    'cron (by the calendar) and every (at an interval), each as a rule or in plain words. Example: {"prompt": "Daily '
    'report", "cron": "0 9 * * *", "misfire": "skip"}. Where no option is needed, promptyoself_schedule_time, '
    "promptyoself_schedule_cron and promptyoself_schedule_every are simpler."
)
CANCEL_DESCRIPTION = (
    "Cancel a schedule for good, by its number; promptyoself_list shows the numbers. Nothing of it starts any more. "
    'Example: {"schedule_id": 42}. To stop it for a while use promptyoself_pause.'
)
PAUSE_DESCRIPTION = 'Stop a schedule for a while; promptyoself_resume goes on with it. Example: {"schedule_id": 42}.'
RESUME_DESCRIPTION = (
    "Go on with a schedule that was paused, from its next time on; what fell into the pause is left out, except for a "
    "prompt that comes once and is overdue: that one comes at once. "
    'Example: {"schedule_id": 42}.'
)
UPDATE_DESCRIPTION = (
    "Change a schedule in place: its text, its rule, its limits. What you leave out stays as it is. "
    'Example: {"schedule_id": 42, "cron": "every weekday at 10 Berlin time"}.'
)
RUN_NOW_DESCRIPTION = (
    "Run a schedule once right now, besides its rule; its next time stays as it is. "
    'Example: {"schedule_id": 42}. promptyoself_history tells what came of it.'
)
HISTORY_DESCRIPTION = (
    "What became of past runs, the newest first: delivered, waiting for another try, skipped and why, or dead (given "
    'up), with each attempt and your answer. Example: {"schedule_id": 42, "limit": 5}.'
)
PREVIEW_DESCRIPTION = (
    "The next times at which a schedule, or a rule that you want to try, would fire; nothing is made. "
    'Example: {"cron": "every weekday at 9 Berlin time", "count": 3}, or {"schedule_id": 42}.'
)
EXECUTE_DESCRIPTION = (
    "Run prompts that are due right now and wait for the outcome; your own come when your present turn has ended. Not "
    'needed as a rule: Frontdesk runs them by itself, on time. {"loop": true, "interval": 60} looks again every 60 '
    "seconds for a while, reports progress, and ends when the call is cancelled."
)
TEST_DESCRIPTION = "Whether the server that hosts the agents answers."
AGENTS_DESCRIPTION = "The agents that prompts can be scheduled for, with their ids."
UPLOAD_DESCRIPTION = (
    "Give the Letta server a new tool, as the whole Python source of one function with type hints and a docstring. "
    "For the operator: it runs on that server."
)
STATUS_DESCRIPTION = "Whether the scheduler runs here, how much it has under way, what waits, and what it gave up."
DIAGNOSE_DESCRIPTION = (
    "Which agent a schedule would be for when you name none, and how that was found out. "
    'Use it after "agent_id is required and could not be inferred".'
)
SET_DEFAULT_DESCRIPTION = "Set the agent that stands in for everybody whose calls name none. For the operator alone."
SET_SCOPED_DESCRIPTION = (
    'Set the agent that stands in when your own calls name none. Example: {"agent_id": "agent-123"}.'
)
GET_SCOPED_DESCRIPTION = "The agent that stands in when your own calls name none, if one was set."


# The tools that an agent needs to schedule for itself; the others are for clients, and every tool costs attention.
HANDED_TO_AGENTS = frozenset(
    {"schedule_time", "schedule_cron", "schedule_every", "list", "cancel", "update", "history", "preview"}
)


# Tools that PromptYoSelf does not have mark their errors as errors, which models heed.
OUTSIDE_PROMPTYOSELF = frozenset({"pause", "resume", "update", "run_now", "history", "preview"})


def _schedule_tool(
    name: str,
    title: str,
    description: str,
    arguments: type[McpToolInput],
    answer: type[ScheduleToolOutput],
    run: Callable[..., Awaitable[McpToolResult]],
    failure: str = "",
    **more: Any,  # noqa: ANN401 - fields of `ToolSpec`
) -> ToolSpec:
    return ToolSpec(
        name=f"promptyoself_{name}",
        handed_to_agents=name in HANDED_TO_AGENTS,
        title=title,
        description=description,
        arguments=arguments,
        answer=answer,
        run=with_failure_prefix(failure, run),
        mcp_path=McpPath.SCHEDULE,
        error_format=ErrorFormat.RESULT if name in OUTSIDE_PROMPTYOSELF else ErrorFormat.ANSWER,
        **more,
    )


READS_HINTS: dict[str, Any] = {"read_only": True}
ADDS_HINTS: dict[str, Any] = {"read_only": False, "destructive": False}
CHANGES_HINTS: dict[str, Any] = {"read_only": False, "destructive": True}

SCHEDULE_TOOLS: tuple[ToolSpec, ...] = (
    _schedule_tool(
        "schedule_time",
        "Schedule once",
        TIME_DESCRIPTION,
        ScheduleTimeInput,
        ScheduleOutput,
        add_schedule,
        **ADDS_HINTS,
    ),
    _schedule_tool(
        "schedule_cron",
        "Schedule by cron",
        CRON_DESCRIPTION,
        ScheduleCronInput,
        ScheduleOutput,
        add_schedule,
        **ADDS_HINTS,
    ),
    _schedule_tool(
        "schedule_every",
        "Schedule at intervals",
        EVERY_DESCRIPTION,
        ScheduleEveryInput,
        ScheduleOutput,
        add_schedule,
        **ADDS_HINTS,
    ),
    _schedule_tool(
        "register",
        "Schedule by any rule",
        REGISTER_DESCRIPTION,
        RegisterInput,
        ScheduleOutput,
        add_schedule,
        **ADDS_HINTS,
    ),
    _schedule_tool(
        "list",
        "List schedules",
        LIST_DESCRIPTION,
        ScheduleListInput,
        ScheduleListOutput,
        list_schedules,
        "Failed to list prompts",
        **READS_HINTS,
    ),
    _schedule_tool(
        "cancel",
        "Cancel a schedule",
        CANCEL_DESCRIPTION,
        ScheduleIdInput,
        CancelledScheduleOutput,
        cancel_schedule,
        "Failed to cancel prompt",
        **CHANGES_HINTS,
    ),
    _schedule_tool(
        "pause",
        "Pause a schedule",
        PAUSE_DESCRIPTION,
        ScheduleIdInput,
        ScheduleStateOutput,
        pause_schedule,
        "Failed to pause",
        **ADDS_HINTS,
    ),
    _schedule_tool(
        "resume",
        "Resume a schedule",
        RESUME_DESCRIPTION,
        ScheduleIdInput,
        ScheduleOutput,
        resume_schedule,
        "Failed to resume",
        **ADDS_HINTS,
    ),
    _schedule_tool(
        "update",
        "Change a schedule",
        UPDATE_DESCRIPTION,
        UpdateScheduleInput,
        ScheduleOutput,
        update_schedule,
        "Failed to update",
        **CHANGES_HINTS,
    ),
    _schedule_tool(
        "run_now",
        "Run now",
        RUN_NOW_DESCRIPTION,
        ScheduleIdInput,
        RunStartedOutput,
        run_schedule_now,
        "Failed to run",
        **ADDS_HINTS,
    ),
    _schedule_tool(
        "history",
        "Past runs",
        HISTORY_DESCRIPTION,
        RunHistoryInput,
        RunHistoryOutput,
        list_runs,
        "Failed to read",
        **READS_HINTS,
    ),
    _schedule_tool(
        "preview",
        "Next times",
        PREVIEW_DESCRIPTION,
        PreviewInput,
        PreviewOutput,
        preview_schedule,
        "Failed to preview",
        **READS_HINTS,
    ),
    _schedule_tool(
        "execute",
        "Run what is due",
        EXECUTE_DESCRIPTION,
        ExecuteInput,
        ExecutionOutput,
        execute_due,
        "Failed to execute prompts",
        needs_context=True,
        **ADDS_HINTS,
    ),
    _schedule_tool(
        "executor_status",
        "Scheduler status",
        STATUS_DESCRIPTION,
        NoArguments,
        SchedulerStatusOutput,
        scheduler_status,
        "Failed to read the status",
        **READS_HINTS,
    ),
    _schedule_tool(
        "test",
        "Test the agent host",
        TEST_DESCRIPTION,
        NoArguments,
        ConnectionTestOutput,
        check_agent_host,
        "Failed to test connection",
    ),
    _schedule_tool(
        "agents",
        "List agents",
        AGENTS_DESCRIPTION,
        NoArguments,
        AgentListOutput,
        list_agents,
        "Failed to list agents",
        **READS_HINTS,
    ),
    _schedule_tool(
        "upload",
        "Upload a tool",
        UPLOAD_DESCRIPTION,
        UploadToolInput,
        UploadedToolOutput,
        upload_tool,
        "Upload failed",
        **CHANGES_HINTS,
    ),
    _schedule_tool(
        "inference_diagnostics",
        "Which agent",
        DIAGNOSE_DESCRIPTION,
        NoArguments,
        DiagnosticsOutput,
        diagnose_inference,
        "Failed to diagnose",
        needs_context=True,
        accepts_any_agent_id=True,
    ),
    _schedule_tool(
        "set_default_agent",
        "Set everybody's default agent",
        SET_DEFAULT_DESCRIPTION,
        DefaultAgentInput,
        DefaultAgentOutput,
        set_default_agent,
        "Failed to set the default agent",
        for_agent=False,
        **CHANGES_HINTS,
    ),
    _schedule_tool(
        "set_scoped_default_agent",
        "Set your default agent",
        SET_SCOPED_DESCRIPTION,
        ScopedAgentInput,
        DefaultAgentOutput,
        set_scoped_default_agent,
        "Failed to set the default agent",
        for_agent=False,
        **CHANGES_HINTS,
    ),
    _schedule_tool(
        "get_scoped_default_agent",
        "Your default agent",
        GET_SCOPED_DESCRIPTION,
        ScopeInput,
        DefaultAgentOutput,
        get_scoped_default_agent,
        "Failed to read the default agent",
        **READS_HINTS,
    ),
)
