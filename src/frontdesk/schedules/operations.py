"""Declares what can be asked about schedules: over the HTTP API, by built-in agents, and with PromptYoSelf's tools."""

from dataclasses import replace

from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.identity.rights import SCHEDULES_READ, SCHEDULES_WRITE, runs_installation
from frontdesk.operations import Answer, BuiltinAgentTool, Call, Effect, IdentifyBy, NoArguments, Operation, RestRoute
from frontdesk.schedules import promptyoself_tools as promptyoself
from frontdesk.schedules.access import owner_filter_for_turn
from frontdesk.schedules.api_models import (
    CancelScheduleArguments,
    ChangeScheduleRequest,
    NewScheduleRequest,
    PreviewResponse,
    PreviewRuleRequest,
    PreviewScheduleRequest,
    RunId,
    RunListQuery,
    RunListResponse,
    RunResponse,
    RunStartedResponse,
    ScheduleListQuery,
    ScheduleListResponse,
    ScheduleNumber,
    SchedulePromptArguments,
    ScheduleResponse,
    SchedulerStatusResponse,
    ScheduleRunsQuery,
    explain_missing_rule,
)
from frontdesk.schedules.model import Schedule
from frontdesk.schedules.requests import RuleDescription, parse_schedule_id
from frontdesk.schedules.service import ScheduleService

PATH = "/v1/schedules"
RULE_FIELDS = "one of when, time, cron and every"
AGENT_SCHEDULE_DESCRIPTION = (
    "Have yourself prompted later, whether anybody talks with you then or not: a reminder, a check, the next step of "
    "something long. Plain words are fine for the time: 'in two minutes', 'tomorrow at 9am Berlin time', 'every "
    "weekday at 9', or a cron rule. The answer says the exact rule; check it. What repeats does so by itself until it "
    "is cancelled."
)
AGENT_LIST_DESCRIPTION = "The prompts that you have scheduled for yourself, with their numbers, rules and next times."
AGENT_CANCEL_DESCRIPTION = "Cancel a scheduled prompt for good, by its number."
NOTHING_SCHEDULED = "Nothing is scheduled."
MAX_LISTED = 50
PROMPT_LENGTH = 200


async def list_schedules(schedules: ScheduleService, call: Call, request: ScheduleListQuery) -> ScheduleListResponse:
    return ScheduleListResponse.of(await schedules.queries.list(call.caller, request.filters))


async def show_schedule(schedules: ScheduleService, call: Call, request: ScheduleNumber) -> ScheduleResponse:
    return ScheduleResponse.of(await schedules.queries.get(call.caller, request.schedule_id))


async def add_schedule(schedules: ScheduleService, call: Call, request: NewScheduleRequest) -> ScheduleResponse:
    with explain_missing_rule(RULE_FIELDS):
        return ScheduleResponse.of((await schedules.add(call.caller, request.new_schedule)).schedule)


async def update_schedule(schedules: ScheduleService, call: Call, request: ChangeScheduleRequest) -> ScheduleResponse:
    saved = await schedules.update(call.caller, request.schedule_id, request.change)
    return ScheduleResponse.of(saved.schedule)


async def cancel_schedule(schedules: ScheduleService, call: Call, request: ScheduleNumber) -> ScheduleResponse:
    return ScheduleResponse.of(await schedules.cancel(call.caller, request.schedule_id))


async def pause_schedule(schedules: ScheduleService, call: Call, request: ScheduleNumber) -> ScheduleResponse:
    return ScheduleResponse.of(await schedules.pause(call.caller, request.schedule_id))


async def resume_schedule(schedules: ScheduleService, call: Call, request: ScheduleNumber) -> ScheduleResponse:
    return ScheduleResponse.of((await schedules.resume(call.caller, request.schedule_id)).schedule)


async def run_schedule(schedules: ScheduleService, call: Call, request: ScheduleNumber) -> RunStartedResponse:
    delivery_id = await schedules.run_now(call.caller, request.schedule_id)
    return RunStartedResponse(schedule_id=parse_schedule_id(request.schedule_id), delivery_id=delivery_id)


async def list_runs(
    schedules: ScheduleService, call: Call, request: RunListQuery | ScheduleRunsQuery
) -> RunListResponse:
    return RunListResponse.of(await schedules.queries.history(call.caller, request.filters))


async def redrive_run(schedules: ScheduleService, call: Call, request: RunId) -> RunResponse:
    return RunResponse.of(await schedules.redrive(call.caller, request.delivery_id))


async def preview_rule(schedules: ScheduleService, call: Call, request: PreviewRuleRequest) -> PreviewResponse:
    with explain_missing_rule(RULE_FIELDS):
        return PreviewResponse.of(await schedules.queries.preview_rule(call.caller, request.rule, request.count))


async def preview_schedule(schedules: ScheduleService, call: Call, request: PreviewScheduleRequest) -> PreviewResponse:
    return PreviewResponse.of(await schedules.queries.preview(call.caller, request.schedule_id, request.count))


async def scheduler_status(schedules: ScheduleService, call: Call, _request: NoArguments) -> SchedulerStatusResponse:
    return SchedulerStatusResponse.of(await schedules.executor.state(call.caller))


# The tools with which a built-in agent schedules prompts for itself.


def has_agent(_schedules: ScheduleService, caller: Caller) -> bool:
    return caller.agent_id is not None


def as_agent(caller: Caller) -> Caller:
    """The agent of a turn as the caller: it calls by itself, and was identified by us."""
    # The credential of a person does not name the agent.
    of_person = caller.user_id is not None and not runs_installation(caller)
    source = AgentIdSource.NONE if of_person else AgentIdSource.CREDENTIAL
    return replace(caller, source=source, verified=True, local=False, any_agent=False)


async def schedule_prompt(schedules: ScheduleService, call: Call, request: SchedulePromptArguments) -> Answer:
    saved = await schedules.add(call.caller, request.new_schedule)
    return Answer(f"Scheduled with number {saved.schedule.id}: {saved.rule.sentence}")


async def list_own_schedules(schedules: ScheduleService, call: Call, _request: NoArguments) -> Answer:
    page = await schedules.queries.list_for_turn(call.caller, MAX_LISTED)
    lines = [_format_schedule(schedule) for schedule in page.schedules]
    return Answer("\n".join([*lines, *(["There are more."] if page.next else [])]) or NOTHING_SCHEDULED)


def _format_schedule(schedule: Schedule) -> str:
    rule = RuleDescription.of(schedule.what.trigger, schedule.intended_us)
    return f"{schedule.id}: {rule.sentence}; {schedule.state}; {schedule.what.prompt[:PROMPT_LENGTH]}"


async def cancel_own_schedule(schedules: ScheduleService, call: Call, request: CancelScheduleArguments) -> Answer:
    own = owner_filter_for_turn(call.caller)
    cancelled = await schedules.cancel(call.caller, request.schedule_id, own)
    return Answer(f"Schedule {cancelled.id} cancelled")


# Agents call the routes too, and are identified as over MCP.
SCHEDULE_OPERATIONS: tuple[Operation, ...] = (
    *promptyoself.SCHEDULE_BY_KIND,
    Operation(
        name="add_schedule",
        summary="Make a schedule",
        request=NewScheduleRequest,
        run=add_schedule,
        scopes=(SCHEDULES_WRITE,),
        effect=Effect.ADDS,
        mcp=promptyoself.REGISTER,
        rest=RestRoute(
            method="POST",
            path=PATH,
            response=ScheduleResponse,
            status=201,
            identify_by=IdentifyBy.BODY,
            slash_too=True,
        ),
        agents=BuiltinAgentTool(
            name="schedule_prompt",
            description=AGENT_SCHEDULE_DESCRIPTION,
            request=SchedulePromptArguments,
            run=schedule_prompt,
            available=has_agent,
            act_as=as_agent,
        ),
    ),
    Operation(
        name="list_schedules",
        summary="The schedules that the caller may see, by their numbers",
        request=ScheduleListQuery,
        run=list_schedules,
        scopes=(SCHEDULES_READ,),
        mcp=promptyoself.LIST,
        rest=RestRoute(method="GET", path=PATH, response=ScheduleListResponse, slash_too=True),
        agents=BuiltinAgentTool(
            description=AGENT_LIST_DESCRIPTION,
            request=NoArguments,
            run=list_own_schedules,
            available=has_agent,
            act_as=as_agent,
        ),
    ),
    Operation(
        name="cancel_schedule",
        summary="Cancel a schedule for good",
        request=ScheduleNumber,
        run=cancel_schedule,
        scopes=(SCHEDULES_WRITE,),
        effect=Effect.CHANGES,
        mcp=promptyoself.CANCEL,
        rest=RestRoute(
            method="DELETE",
            path=f"{PATH}/{{schedule_id}}",
            response=ScheduleResponse,
            identify_by=IdentifyBy.BODY,
        ),
        agents=BuiltinAgentTool(
            description=AGENT_CANCEL_DESCRIPTION,
            request=CancelScheduleArguments,
            run=cancel_own_schedule,
            available=has_agent,
            act_as=as_agent,
        ),
    ),
    Operation(
        name="pause_schedule",
        summary="Stop a schedule for a while",
        request=ScheduleNumber,
        run=pause_schedule,
        scopes=(SCHEDULES_WRITE,),
        effect=Effect.ADDS,
        mcp=promptyoself.PAUSE,
        rest=RestRoute(
            method="POST",
            path=f"{PATH}/{{schedule_id}}/pause",
            response=ScheduleResponse,
            identify_by=IdentifyBy.BODY,
        ),
    ),
    Operation(
        name="resume_schedule",
        summary="Go on with a schedule that was paused",
        request=ScheduleNumber,
        run=resume_schedule,
        scopes=(SCHEDULES_WRITE,),
        effect=Effect.ADDS,
        mcp=promptyoself.RESUME,
        rest=RestRoute(
            method="POST",
            path=f"{PATH}/{{schedule_id}}/resume",
            response=ScheduleResponse,
            identify_by=IdentifyBy.BODY,
        ),
    ),
    Operation(
        name="update_schedule",
        summary="Change a schedule in place",
        request=ChangeScheduleRequest,
        run=update_schedule,
        scopes=(SCHEDULES_WRITE,),
        effect=Effect.CHANGES,
        mcp=promptyoself.UPDATE,
        rest=RestRoute(
            method="PATCH",
            path=f"{PATH}/{{schedule_id}}",
            response=ScheduleResponse,
            identify_by=IdentifyBy.BODY,
        ),
    ),
    Operation(
        name="run_schedule",
        summary="Run a schedule once now, besides its rule",
        request=ScheduleNumber,
        run=run_schedule,
        scopes=(SCHEDULES_WRITE,),
        effect=Effect.ADDS,
        mcp=promptyoself.RUN_NOW,
        rest=RestRoute(
            method="POST",
            path=f"{PATH}/{{schedule_id}}/run",
            response=RunStartedResponse,
            identify_by=IdentifyBy.BODY,
        ),
    ),
    Operation(
        name="list_runs",
        summary="What became of runs, the newest first; dead letters are those with standing=dead",
        request=RunListQuery,
        run=list_runs,
        scopes=(SCHEDULES_READ,),
        mcp=promptyoself.HISTORY,
        rest=RestRoute(method="GET", path=f"{PATH}/runs", response=RunListResponse),
    ),
    Operation(
        name="preview_schedule",
        summary="When a schedule fires next",
        request=PreviewScheduleRequest,
        run=preview_schedule,
        scopes=(SCHEDULES_READ,),
        mcp=promptyoself.PREVIEW,
        rest=RestRoute(method="GET", path=f"{PATH}/{{schedule_id}}/preview", response=PreviewResponse),
    ),
    promptyoself.EXECUTE,
    Operation(
        name="scheduler_status",
        summary="How the scheduler of this process is doing, and what waits",
        request=NoArguments,
        run=scheduler_status,
        scopes=(SCHEDULES_READ,),
        mcp=promptyoself.STATUS,
        rest=RestRoute(method="GET", path=f"{PATH}/status", response=SchedulerStatusResponse),
    ),
    *promptyoself.HOST_AND_DEFAULT_AGENTS,
    Operation(
        name="preview_rule",
        summary="When a rule would fire; nothing is made",
        request=PreviewRuleRequest,
        run=preview_rule,
        scopes=(SCHEDULES_READ,),
        rest=RestRoute(
            method="POST",
            path=f"{PATH}/preview",
            response=PreviewResponse,
            identify_by=IdentifyBy.BODY,
        ),
    ),
    Operation(
        name="schedule_history",
        summary="What became of a schedule's runs, the newest first",
        request=ScheduleRunsQuery,
        run=list_runs,
        scopes=(SCHEDULES_READ,),
        rest=RestRoute(method="GET", path=f"{PATH}/{{schedule_id}}/history", response=RunListResponse),
    ),
    Operation(
        name="redrive_run",
        summary="Try a dead letter again, from its first attempt on",
        request=RunId,
        run=redrive_run,
        scopes=(SCHEDULES_WRITE,),
        effect=Effect.CHANGES,
        rest=RestRoute(
            method="POST",
            path=f"{PATH}/runs/{{delivery_id}}/redrive",
            response=RunResponse,
            identify_by=IdentifyBy.BODY,
        ),
    ),
    Operation(
        name="show_schedule",
        summary="A schedule",
        request=ScheduleNumber,
        run=show_schedule,
        scopes=(SCHEDULES_READ,),
        rest=RestRoute(method="GET", path=f"{PATH}/{{schedule_id}}", response=ScheduleResponse),
    ),
)
