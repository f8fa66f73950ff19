"""The methods of the library: everything that can be asked of Frontdesk, by capability.

`python -m generate` writes this file from the declared operations; change those.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from frontdesk.agents.chat.api_models import (
    ApprovalDecision,
    CancelSessionResponse,
    NewSessionResponse,
    RestoreSessionResponse,
    SentResponse,
    SessionListResponse,
    SessionResponse,
)
from frontdesk.app import HealthOutput, WhoamiOutput
from frontdesk.interfaces.library.exposure import UNSET, CallTransport, Unset
from frontdesk.key_operations import DeletedKeyResponse, KeyListResponse, NewKeyResponse, SingleKeyResponse
from frontdesk.memory.model import Memory
from frontdesk.memory.operations.activities import ActivitiesAnswer, ActivityStatsAnswer
from frontdesk.memory.operations.memories import DeletedAnswer, MemoriesAnswer, MemoryAnswer, MemoryStatsAnswer
from frontdesk.memory.operations.status import SystemStatusAnswer
from frontdesk.memory.operations.task_requests import Artifact, ExecutionResult, GuardrailFields, NewTaskContent
from frontdesk.memory.operations.tasks import TaskAnswer, TasksAnswer, TaskStatsAnswer, TasksUpdatedAnswer
from frontdesk.memory.operations.time_tracking import DaySpendingAnswer, TimeEntriesAnswer, TimerAnswer
from frontdesk.memory.operations.timeline import InsightsAnswer, ItemsAnswer, TimelineMatchesAnswer
from frontdesk.memory.operations.timeline_requests import HappenedRange
from frontdesk.memory.operations.work_queue import AiTaskAnswer, AiTasksAnswer, AiTaskStatsAnswer, WaitingAnswer
from frontdesk.memory.rest.people import EraseResponse, ExportResponse, PersonSettingsResponse, PersonStatsResponse
from frontdesk.memory.rest.responses import (
    ActivityResponse,
    AiTaskResponse,
    AnchoredListResponse,
    AnchorListResponse,
    AnchorResponse,
    CategoryListResponse,
    CategoryResponse,
    DeletedResponse,
    DoneResponse,
    EntryListResponse,
    EntryResponse,
    ItemListResponse,
    ItemResponse,
    OptionalAiTaskResponse,
    RelationListResponse,
    RelationResponse,
    TaskResponse,
    TaskTreeResponse,
)
from frontdesk.operations import SuccessResponse
from frontdesk.schedules.api_models import (
    PreviewResponse,
    RunListResponse,
    RunResponse,
    RunStartedResponse,
    ScheduleListResponse,
    ScheduleResponse,
    SchedulerStatusResponse,
)
from frontdesk.schedules.promptyoself_models import (
    AgentListOutput,
    ConnectionTestOutput,
    DefaultAgentOutput,
    DiagnosticsOutput,
    ExecutionOutput,
    ScheduleOutput,
    UploadedToolOutput,
)
from frontdesk.tools.responses import (
    AccessRuleListResponse,
    AccessRuleResponse,
    AgentToolChanges,
    ExplainSearchResponse,
    RefreshServersResponse,
    RunToolResponse,
    SearchToolsResponse,
    ServerCrawlResponse,
    ServerListResponse,
    ToolDetailsResponse,
    ToolPageResponse,
    ToolResponse,
    ToolSelectionResponse,
    ToolUseListResponse,
)

ActivityStatusValue = Literal["active", "completed", "cancelled"]
ActivityTypeValue = Literal[
    "exercise",
    "meditation",
    "reading",
    "music",
    "socializing",
    "gaming",
    "walking",
    "cooking",
    "rest",
    "creative",
    "learning",
    "other",
]
AiModeValue = Literal["plan_only", "dry_run", "execute"]
AiStatusValue = Literal["pending", "assigned", "in_progress", "paused", "completed", "failed", "cancelled"]
AiTaskTypeValue = Literal[
    "brainstorming",
    "daily_qa",
    "coding",
    "mcp",
    "news_search",
    "comet",
    "tts",
    "stt",
    "companion",
    "speech",
    "image_gen",
    "analysis",
    "writing",
    "research",
    "translation",
]
AnchorRelationValue = Literal[
    "context_of", "result_of", "insight_from", "about", "co_occurred", "triggered_by", "reflects_on"
]
IntensityValue = Literal["low", "moderate", "high"]
ItemTypeValue = Literal["task", "activity", "routine", "habit", "memory"]
MemoryStatusValue = Literal["active", "archived", "deleted"]
MemoryTypeValue = Literal["note", "link", "file", "thought", "quote", "insight"]
PriorityValue = Literal["low", "medium", "high", "urgent"]
ReviewStatusValue = Literal["ready", "held"]
RunStatusValue = Literal["running", "waiting", "delivered", "dead", "skipped", "cancelled"]
ScheduleStateValue = Literal["active", "paused", "cancelled", "ended"]
TaskRelationValue = Literal["subtask", "related", "dependency", "blocked_by"]
TaskStatusValue = Literal["pending", "in_progress", "completed", "on_hold", "cancelled"]
ToolKindValue = Literal["mcp", "host"]


class ChatMethods:
    """A person's sessions with agents."""

    def __init__(self, transport: CallTransport) -> None:
        self._transport = transport

    async def open_session(self, *, agent_id: str) -> NewSessionResponse:
        """Open a session with an agent.

        Args:
            agent_id: The agent's id, at most 200 characters.

        Returns:
            A new session.
        """
        return await self._transport.call("open_session", {"agent_id": agent_id})

    async def show_sessions(self, *, session_id: str | None = None) -> SessionResponse | SessionListResponse:
        """One session with what was said in it, or all of one's own.

        Args:
            session_id: The session's id.

        Returns:
            A session with its messages, and the tool calls that wait for approval. Or: The person's own sessions, the
            newest first.
        """
        return await self._transport.call("show_sessions", {"session_id": session_id})

    async def delete_session(self, *, session_id: str) -> SuccessResponse:
        """End a session and what is under way in it.

        Args:
            session_id: The session's id, at most 200 characters.

        Returns:
            The request succeeded.
        """
        return await self._transport.call("delete_session", {"session_id": session_id})

    async def restore_session(self, *, session_id: str, agent_id: str) -> RestoreSessionResponse:
        """Open a session again that has run out.

        Args:
            session_id: The session's id, at most 200 characters.
            agent_id: The agent's id, at most 200 characters.

        Returns:
            The session is open.
        """
        return await self._transport.call("restore_session", {"session_id": session_id, "agent_id": agent_id})

    async def send_message(self, *, session_id: str, message: str) -> SentResponse:
        """Say something; the reply is streamed.

        Args:
            session_id: The session's id, at most 200 characters.
            message: The message, at most 200,000 characters.

        Returns:
            The message was accepted; the stream has the reply.
        """
        return await self._transport.call("send_message", {"session_id": session_id, "message": message})

    async def send_approvals(
        self, *, session_id: str, approvals: Sequence[ApprovalDecision | Mapping[str, Any]]
    ) -> SentResponse:
        """Approve or reject the tool calls that wait.

        Args:
            session_id: The session's id, at most 200 characters.
            approvals: The approvals, at most 100.

        Returns:
            The message was accepted; the stream has the reply.
        """
        return await self._transport.call("send_approvals", {"session_id": session_id, "approvals": approvals})

    async def cancel(self, *, session_id: str) -> CancelSessionResponse:
        """Stop what is under way in a session.

        Args:
            session_id: The session's id, at most 200 characters.

        Returns:
            No reply is running any more.
        """
        return await self._transport.call("cancel", {"session_id": session_id})


class ToolMethods:
    """Find and call the tools of servers, choose an agent's tools, and administer the catalogue."""

    def __init__(self, transport: CallTransport) -> None:
        self._transport = transport

    async def search_tools(
        self,
        *,
        query: str,
        limit: int = 10,
        min_score: float = 0,
        servers: Sequence[str] | str = (),
        detailed: bool = False,
    ) -> SearchToolsResponse:
        """Find tools by what they should do.

        Args:
            query: The query, at most 20,000 characters.
            limit: The limit, 1 to 25.
            min_score: What a tool must reach; nothing, unless it is said.
            servers: A list, or comma separated.
            detailed: Give each tool's whole schema too.

        Returns:
            The found tools, the best first.
        """
        return await self._transport.call(
            "search_tools",
            {"query": query, "limit": limit, "min_score": min_score, "servers": servers, "detailed": detailed},
        )

    async def find_tools(
        self,
        *,
        query: str,
        keep_tools: str = "",
        limit: int = 10,
        min_score: float = 50.0,
        servers: str = "",
        dry_run: bool = False,
        detailed_response: bool = False,
        follow_up: bool = False,
        request_heartbeat: bool = False,
    ) -> ToolSelectionResponse:
        """Find tools for an agent, and attach them to it.

        Args:
            query: What you want done, in plain words, or a tool's name.
            keep_tools: Names or ids of tools that must stay, comma separated.
            limit: How many to find at most.
            min_score: How well one must fit.
            servers: Look only among these servers, comma separated.
            dry_run: Only say what would be attached and detached.
            detailed_response: Give each tool's whole schema too.
            follow_up: Be called on again once this run is over.
            request_heartbeat: Another word for follow_up.

        Returns:
            The tools found for an agent, and the changes to its tools.
        """
        return await self._transport.call(
            "find_tools",
            {
                "query": query,
                "keep_tools": keep_tools,
                "limit": limit,
                "min_score": min_score,
                "servers": servers,
                "dry_run": dry_run,
                "detailed_response": detailed_response,
                "follow_up": follow_up,
                "request_heartbeat": request_heartbeat,
            },
        )

    async def prune_tools(
        self,
        *,
        user_prompt: str,
        drop_rate: float | None = None,
        keep_tool_ids: Sequence[str] | str = (),
        dry_run: bool = False,
    ) -> AgentToolChanges:
        """Take from an agent the tools that fit a prompt least.

        Args:
            user_prompt: The user prompt, at most 20,000 characters.
            drop_rate: The share of its tools to let go; DEFAULT_DROP_RATE unless said.
            keep_tool_ids: A list, or comma separated.
            dry_run: Yes or no: dry run.

        Returns:
            The changes to an agent's tools.
        """
        return await self._transport.call(
            "prune_tools",
            {"user_prompt": user_prompt, "drop_rate": drop_rate, "keep_tool_ids": keep_tool_ids, "dry_run": dry_run},
        )

    async def call_tool(self, *, name: str, arguments: Mapping[str, Any] | None = None) -> RunToolResponse:
        """Run a tool now.

        Args:
            name: The name, at most 300 characters.
            arguments: The arguments.

        Returns:
            The result of a tool, with the server's own blocks and structured content.
        """
        return await self._transport.call("call_tool", {"name": name, "arguments": arguments})

    async def pick_tool(self, *, name: str) -> ToolResponse:
        """Say which of the tools found was the right one.

        Args:
            name: The name, at most 300 characters.

        Returns:
            A tool of the catalogue.
        """
        return await self._transport.call("pick_tool", {"name": name})

    async def explain_tool(
        self, *, query: str, tool: str, limit: int = 10, min_score: float = 50.0
    ) -> ExplainSearchResponse:
        """Why a search finds a tool, or does not.

        Args:
            query: The query, at most 20,000 characters.
            tool: The tool, at most 300 characters.
            limit: The limit, 1 to 25.
            min_score: The min score, 0 to 100.

        Returns:
            Why a tool is found, or is not.
        """
        return await self._transport.call(
            "explain_tool", {"query": query, "tool": tool, "limit": limit, "min_score": min_score}
        )

    async def list_servers(self) -> ServerListResponse:
        """Where tools come from, and how each server is.

        Returns:
            The tool servers.
        """
        return await self._transport.call("list_servers", {})

    async def add_server(
        self,
        *,
        name: str,
        url: str = "",
        transport: Literal["http", "sse", "stdio"] = "http",
        headers: Mapping[str, str] | None = None,
        user_token: bool = False,
        description: str = "",
        hold_changes: bool | None = None,
        force: bool = False,
        command: object | None = None,
    ) -> ServerCrawlResponse:
        """Add a server, and ask it for its tools.

        Args:
            name: The name, at most 100 characters.
            url: The url, at most 2,000 characters.
            transport: The transport.
            headers: Kept, and not shown again.
            user_token: Send it the token of the person that a call is for.
            description: The description, at most 2,000 characters.
            hold_changes: Hold back a tool that changes; else as the settings say.
            force: Keep it although it does not answer, and in place of one of its name.
            command: Never taken here: it would run on the server's machine.

        Returns:
            How a server answered when it was asked for its tools.
        """
        return await self._transport.call(
            "add_server",
            {
                "name": name,
                "url": url,
                "transport": transport,
                "headers": headers,
                "user_token": user_token,
                "description": description,
                "hold_changes": hold_changes,
                "force": force,
                "command": command,
            },
        )

    async def remove_server(self, *, name: str) -> SuccessResponse:
        """Take off a server that was added.

        Args:
            name: The name.

        Returns:
            The request succeeded.
        """
        return await self._transport.call("remove_server", {"name": name})

    async def refresh_tools(self, *, servers: Sequence[str] | None = None) -> RefreshServersResponse:
        """Ask servers for their tools now.

        Args:
            servers: The servers.

        Returns:
            How each server answered.
        """
        return await self._transport.call("refresh_tools", {"servers": servers})

    async def tool_usage(
        self, *, agent_id: str | None = None, tool: str | None = None, days: int = 30, limit: int = 100
    ) -> ToolUseListResponse:
        """Which agents use which tools, how often and how well.

        Args:
            agent_id: The agent's id.
            tool: The tool.
            days: The days, 1 to 3,650.
            limit: The limit, 1 to 1,000.

        Returns:
            The most used first.
        """
        return await self._transport.call(
            "tool_usage", {"agent_id": agent_id, "tool": tool, "days": days, "limit": limit}
        )

    async def forget_uses(self) -> SuccessResponse:
        """Forget which tools were of use to the caller.

        Returns:
            The request succeeded.
        """
        return await self._transport.call("forget_uses", {})

    async def list_rights(self) -> AccessRuleListResponse:
        """The rules about who may use which tools.

        Returns:
            Every rule, the oldest first.
        """
        return await self._transport.call("list_rights", {})

    async def add_right(self, *, subject: str, effect: Literal["allow", "deny"], pattern: str) -> AccessRuleResponse:
        """Add a rule.

        Args:
            subject: agent:ID, user:ID, or * for everybody.
            effect: The effect.
            pattern: server::tool, where * stands for anything.

        Returns:
            Who may, or may not, use which tools.
        """
        return await self._transport.call("add_right", {"subject": subject, "effect": effect, "pattern": pattern})

    async def remove_right(self, *, rule_id: str) -> SuccessResponse:
        """Take a rule away.

        Args:
            rule_id: The rule's id.

        Returns:
            The request succeeded.
        """
        return await self._transport.call("remove_right", {"rule_id": rule_id})

    async def list_tools(
        self,
        *,
        server: str | None = None,
        kind: ToolKindValue | None = None,
        standing: ReviewStatusValue | None = None,
        changed: bool = False,
        after: str = "",
        limit: int = 100,
    ) -> ToolPageResponse:
        """The tools that the caller may use, in the order of their ids.

        Args:
            server: The server.
            kind: The kind.
            standing: The standing.
            changed: Only those that changed since they were approved.
            after: `next` of the page before.
            limit: The limit, 1 to 500.

        Returns:
            A page of tools; `next` goes into `after`.
        """
        return await self._transport.call(
            "list_tools",
            {"server": server, "kind": kind, "standing": standing, "changed": changed, "after": after, "limit": limit},
        )

    async def review_tool(self, *, tool_id: str, accept: bool) -> ToolDetailsResponse:
        """Accept or refuse how a tool changed.

        Args:
            tool_id: The tool's id.
            accept: Yes or no: accept.

        Returns:
            A tool with everything that is known of it. `other` is the version that is not in use, if it changed.
        """
        return await self._transport.call("review_tool", {"tool_id": tool_id, "accept": accept})

    async def show_tool(self, *, tool_id: str) -> ToolDetailsResponse:
        """A tool with its schema, and the change to review.

        Args:
            tool_id: The tool's id.

        Returns:
            A tool with everything that is known of it. `other` is the version that is not in use, if it changed.
        """
        return await self._transport.call("show_tool", {"tool_id": tool_id})


class ScheduleMethods:
    """Prompts that come to an agent later, and what became of them."""

    def __init__(self, transport: CallTransport) -> None:
        self._transport = transport

    async def schedule_once(
        self,
        *,
        prompt: str | None = None,
        skip_validation: bool = False,
        time: str | None = None,
        zone: str | None = None,
    ) -> ScheduleOutput:
        """Make a schedule that fires once.

        Args:
            prompt: What you want to be told then, written so that it is understood without this conversation.
            skip_validation: Do not check that the agent exists.
            time: One moment: an ISO 8601 time in the future with Z or an offset (2025-12-25T10:00:00Z), or plain words
                (in two minutes, tomorrow at 9 Berlin time).
            zone: The time zone as an IANA name, e.g. Europe/Berlin; UTC when left out.

        Returns:
            A new or changed schedule, with its rule as it was understood.
        """
        return await self._transport.call(
            "schedule_once", {"prompt": prompt, "skip_validation": skip_validation, "time": time, "zone": zone}
        )

    async def schedule_by_cron(
        self,
        *,
        prompt: str | None = None,
        skip_validation: bool = False,
        cron: str | None = None,
        zone: str | None = None,
        start_at: str | None = None,
        end_at: str | None = None,
        max_repetitions: int | None = None,
    ) -> ScheduleOutput:
        """Make a schedule by a cron rule.

        Args:
            prompt: What you want to be told then, written so that it is understood without this conversation.
            skip_validation: Do not check that the agent exists.
            cron: A cron rule of five fields (0 9 * * MON-FRI), @daily and the like, or plain words (every weekday at
                9).
            zone: The time zone as an IANA name, e.g. Europe/Berlin; UTC when left out.
            start_at: When to begin: a time in the future, as ISO 8601 or in plain words.
            end_at: Nothing fires after this time.
            max_repetitions: Stop after so many runs.

        Returns:
            A new or changed schedule, with its rule as it was understood.
        """
        return await self._transport.call(
            "schedule_by_cron",
            {
                "prompt": prompt,
                "skip_validation": skip_validation,
                "cron": cron,
                "zone": zone,
                "start_at": start_at,
                "end_at": end_at,
                "max_repetitions": max_repetitions,
            },
        )

    async def schedule_at_intervals(
        self,
        *,
        prompt: str | None = None,
        skip_validation: bool = False,
        every: str | None = None,
        start_at: str | None = None,
        end_at: str | None = None,
        max_repetitions: int | None = None,
    ) -> ScheduleOutput:
        """Make a schedule at an interval.

        Args:
            prompt: What you want to be told then, written so that it is understood without this conversation.
            skip_validation: Do not check that the agent exists.
            every: How often: 30s, 5m, 1h, 2d, a number of seconds, or plain words (every two hours).
            start_at: When to begin: a time in the future, as ISO 8601 or in plain words.
            end_at: Nothing fires after this time.
            max_repetitions: Stop after so many runs.

        Returns:
            A new or changed schedule, with its rule as it was understood.
        """
        return await self._transport.call(
            "schedule_at_intervals",
            {
                "prompt": prompt,
                "skip_validation": skip_validation,
                "every": every,
                "start_at": start_at,
                "end_at": end_at,
                "max_repetitions": max_repetitions,
            },
        )

    async def add_schedule(
        self,
        *,
        prompt: str,
        when: str | None = None,
        time: str | None = None,
        cron: str | None = None,
        every: str | int | None = None,
        zone: str | None = None,
        start_at: str | None = None,
        end_at: str | None = None,
        jitter: str | int | None = None,
        max_repetitions: int | None = None,
        overlap: str | None = None,
        misfire: str | None = None,
        max_late: str | int | None = None,
        attempts: int | None = None,
        webhook: str | None = None,
        timeline: bool | None = None,
        conversation_id: str | None = None,
        skip_validation: bool = False,
    ) -> ScheduleResponse:
        """Make a schedule.

        Args:
            prompt: The prompt.
            when: Any of the three, or plain words: in two minutes, every weekday at 9 Berlin time.
            time: Once, at this time: ISO 8601 with Z or an offset.
            cron: Five fields, or @daily and the like.
            every: 30s, 5m, 1h, 2d, or a number of seconds.
            zone: An IANA name, e.g. Europe/Berlin; UTC unless said.
            start_at: The start at, at most 2,000 characters.
            end_at: The end at, at most 2,000 characters.
            jitter: Each fire comes up to this much later.
            max_repetitions: The max repetitions.
            overlap: queue, skip, allow.
            misfire: once, all, skip.
            max_late: A fire later than this is left out.
            attempts: The attempts.
            webhook: The webhook, at most 2,000 characters.
            timeline: For later: there is no timeline yet, and true is refused.
            conversation_id: The conversation's id, at most 2,000 characters.
            skip_validation: Do not check that the agent exists.

        Returns:
            A schedule in its present state.
        """
        return await self._transport.call(
            "add_schedule",
            {
                "prompt": prompt,
                "when": when,
                "time": time,
                "cron": cron,
                "every": every,
                "zone": zone,
                "start_at": start_at,
                "end_at": end_at,
                "jitter": jitter,
                "max_repetitions": max_repetitions,
                "overlap": overlap,
                "misfire": misfire,
                "max_late": max_late,
                "attempts": attempts,
                "webhook": webhook,
                "timeline": timeline,
                "conversation_id": conversation_id,
                "skip_validation": skip_validation,
            },
        )

    async def list_schedules(
        self,
        *,
        agent_id: str | None = None,
        state: ScheduleStateValue | None = None,
        include_cancelled: bool = False,
        after: int = 0,
        limit: int = 100,
    ) -> ScheduleListResponse:
        """The schedules that the caller may see, by their numbers.

        Args:
            agent_id: The agent's id.
            state: The state.
            include_cancelled: Also those that are cancelled or over.
            after: `next` of the page before.
            limit: The limit, 1 to 1,000.

        Returns:
            Schedules by their numbers; pass `next` as `after`.
        """
        return await self._transport.call(
            "list_schedules",
            {
                "agent_id": agent_id,
                "state": state,
                "include_cancelled": include_cancelled,
                "after": after,
                "limit": limit,
            },
        )

    async def cancel_schedule(self, *, schedule_id: str) -> ScheduleResponse:
        """Cancel a schedule for good.

        Args:
            schedule_id: The schedule's id.

        Returns:
            A schedule in its present state.
        """
        return await self._transport.call("cancel_schedule", {"schedule_id": schedule_id})

    async def pause_schedule(self, *, schedule_id: str) -> ScheduleResponse:
        """Stop a schedule for a while.

        Args:
            schedule_id: The schedule's id.

        Returns:
            A schedule in its present state.
        """
        return await self._transport.call("pause_schedule", {"schedule_id": schedule_id})

    async def resume_schedule(self, *, schedule_id: str) -> ScheduleResponse:
        """Go on with a schedule that was paused.

        Args:
            schedule_id: The schedule's id.

        Returns:
            A schedule in its present state.
        """
        return await self._transport.call("resume_schedule", {"schedule_id": schedule_id})

    async def update_schedule(
        self,
        *,
        schedule_id: str,
        when: str | Unset | None = UNSET,
        time: str | Unset | None = UNSET,
        cron: str | Unset | None = UNSET,
        every: str | int | Unset | None = UNSET,
        zone: str | Unset | None = UNSET,
        start_at: str | Unset | None = UNSET,
        end_at: str | Unset | None = UNSET,
        jitter: str | int | Unset | None = UNSET,
        max_repetitions: int | Unset | None = UNSET,
        overlap: str | Unset | None = UNSET,
        misfire: str | Unset | None = UNSET,
        max_late: str | int | Unset | None = UNSET,
        attempts: int | Unset | None = UNSET,
        webhook: str | Unset | None = UNSET,
        timeline: bool | Unset | None = UNSET,
        conversation_id: str | Unset | None = UNSET,
        prompt: str | Unset | None = UNSET,
    ) -> ScheduleResponse:
        """Change a schedule in place.

        A parameter that is left out changes nothing; None removes a value.

        Args:
            schedule_id: The schedule's id.
            when: Any of the three, or plain words: in two minutes, every weekday at 9 Berlin time.
            time: Once, at this time: ISO 8601 with Z or an offset.
            cron: Five fields, or @daily and the like.
            every: 30s, 5m, 1h, 2d, or a number of seconds.
            zone: An IANA name, e.g. Europe/Berlin; UTC unless said.
            start_at: The start at, at most 2,000 characters.
            end_at: The end at, at most 2,000 characters.
            jitter: Each fire comes up to this much later.
            max_repetitions: The max repetitions.
            overlap: queue, skip, allow.
            misfire: once, all, skip.
            max_late: A fire later than this is left out.
            attempts: The attempts.
            webhook: The webhook, at most 2,000 characters.
            timeline: For later: there is no timeline yet, and true is refused.
            conversation_id: The conversation's id, at most 2,000 characters.
            prompt: The prompt.

        Returns:
            A schedule in its present state.
        """
        return await self._transport.call(
            "update_schedule",
            {
                "schedule_id": schedule_id,
                "when": when,
                "time": time,
                "cron": cron,
                "every": every,
                "zone": zone,
                "start_at": start_at,
                "end_at": end_at,
                "jitter": jitter,
                "max_repetitions": max_repetitions,
                "overlap": overlap,
                "misfire": misfire,
                "max_late": max_late,
                "attempts": attempts,
                "webhook": webhook,
                "timeline": timeline,
                "conversation_id": conversation_id,
                "prompt": prompt,
            },
        )

    async def run_schedule(self, *, schedule_id: str) -> RunStartedResponse:
        """Run a schedule once now, besides its rule.

        Args:
            schedule_id: The schedule's id.

        Returns:
            A run that was started by hand; the history has it under this id.
        """
        return await self._transport.call("run_schedule", {"schedule_id": schedule_id})

    async def list_runs(
        self,
        *,
        agent_id: str | None = None,
        standing: RunStatusValue | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> RunListResponse:
        """What became of runs, the newest first; dead letters are those with standing=dead.

        Args:
            agent_id: The agent's id.
            standing: The standing.
            before: Only runs that were due before this time, or `next` of a page.
            limit: The limit, 1 to 1,000.

        Returns:
            Runs, the newest first; pass `next` as `before`.
        """
        return await self._transport.call(
            "list_runs", {"agent_id": agent_id, "standing": standing, "before": before, "limit": limit}
        )

    async def preview_schedule(self, *, schedule_id: str, count: int = 5) -> PreviewResponse:
        """When a schedule fires next.

        Args:
            schedule_id: The schedule's id.
            count: The count, 1 to 100.

        Returns:
            The next times at which a rule fires.
        """
        return await self._transport.call("preview_schedule", {"schedule_id": schedule_id, "count": count})

    async def execute_due(self, *, loop: bool = False, interval: int = 60, max_seconds: int = 300) -> ExecutionOutput:
        """Run the prompts that are due now, once or in a loop.

        Args:
            loop: Go on for a while instead of running once.
            interval: Seconds from one round to the next, with loop.
            max_seconds: With loop: how long to go on.

        Returns:
            The prompts that were run; a loop reports only its end.
        """
        return await self._transport.call(
            "execute_due", {"loop": loop, "interval": interval, "max_seconds": max_seconds}
        )

    async def scheduler_status(self) -> SchedulerStatusResponse:
        """How the scheduler of this process is doing, and what waits.

        Returns:
            The state of this process's scheduler, and the waiting prompts; only operators see figures about everybody.
        """
        return await self._transport.call("scheduler_status", {})

    async def test_agent_host(self) -> ConnectionTestOutput:
        """Whether the server that hosts the agents answers.

        Returns:
            The agent host answered.
        """
        return await self._transport.call("test_agent_host", {})

    async def list_schedulable_agents(self) -> AgentListOutput:
        """The agents that prompts can be scheduled for.

        Returns:
            Agents for which the caller may schedule.
        """
        return await self._transport.call("list_schedulable_agents", {})

    async def upload_tool(
        self, *, source_code: str | None = None, name: str | None = None, description: str | None = None
    ) -> UploadedToolOutput:
        """Give the Letta server a new tool.

        Args:
            source_code: The whole Python source: one function with type hints and a docstring.
            name: What to call it in logs.
            description: What it is for.

        Returns:
            A tool that Letta now has.
        """
        return await self._transport.call(
            "upload_tool", {"source_code": source_code, "name": name, "description": description}
        )

    async def diagnose_inference(self) -> DiagnosticsOutput:
        """Which agent a schedule would be for, and how that was found out.

        Returns:
            The agent of a call without an agent_id, and how it was inferred.
        """
        return await self._transport.call("diagnose_inference", {})

    async def set_default_agent(self, *, agent_id: str | None = None) -> DefaultAgentOutput:
        """Set the agent that stands in for everybody whose calls name none.

        Args:
            agent_id: The agent's id; leave it empty to take the default away.

        Returns:
            The default agent of a scope.
        """
        return await self._transport.call("set_default_agent", {"agent_id": agent_id})

    async def set_scoped_default_agent(
        self, *, agent_id: str | None = None, scope: str | None = None
    ) -> DefaultAgentOutput:
        """Set the agent that stands in when the caller's own calls name none.

        Args:
            agent_id: The agent's id; leave it empty to take the default away.
            scope: Whose default; your own when left out. Another's takes the scope schedules:admin.

        Returns:
            The default agent of a scope.
        """
        return await self._transport.call("set_scoped_default_agent", {"agent_id": agent_id, "scope": scope})

    async def get_scoped_default_agent(self, *, scope: str | None = None) -> DefaultAgentOutput:
        """The agent that stands in when the caller's own calls name none.

        Args:
            scope: Whose default; your own when left out.

        Returns:
            The default agent of a scope.
        """
        return await self._transport.call("get_scoped_default_agent", {"scope": scope})

    async def preview_rule(
        self,
        *,
        when: str | None = None,
        time: str | None = None,
        cron: str | None = None,
        every: str | int | None = None,
        zone: str | None = None,
        start_at: str | None = None,
        end_at: str | None = None,
        count: int = 5,
    ) -> PreviewResponse:
        """When a rule would fire; nothing is made.

        Args:
            when: Any of the three, or plain words: in two minutes, every weekday at 9 Berlin time.
            time: Once, at this time: ISO 8601 with Z or an offset.
            cron: Five fields, or @daily and the like.
            every: 30s, 5m, 1h, 2d, or a number of seconds.
            zone: An IANA name, e.g. Europe/Berlin; UTC unless said.
            start_at: The start at, at most 2,000 characters.
            end_at: The end at, at most 2,000 characters.
            count: The count, 1 to 100.

        Returns:
            The next times at which a rule fires.
        """
        return await self._transport.call(
            "preview_rule",
            {
                "when": when,
                "time": time,
                "cron": cron,
                "every": every,
                "zone": zone,
                "start_at": start_at,
                "end_at": end_at,
                "count": count,
            },
        )

    async def schedule_history(
        self, *, schedule_id: str, standing: RunStatusValue | None = None, before: str | None = None, limit: int = 100
    ) -> RunListResponse:
        """What became of a schedule's runs, the newest first.

        Args:
            schedule_id: The schedule's id.
            standing: The standing.
            before: Only runs that were due before this time, or `next` of a page.
            limit: The limit, 1 to 1,000.

        Returns:
            Runs, the newest first; pass `next` as `before`.
        """
        return await self._transport.call(
            "schedule_history", {"schedule_id": schedule_id, "standing": standing, "before": before, "limit": limit}
        )

    async def redrive_run(self, *, delivery_id: str) -> RunResponse:
        """Try a dead letter again, from its first attempt on.

        Args:
            delivery_id: The delivery's id.

        Returns:
            The outcome of one fire.
        """
        return await self._transport.call("redrive_run", {"delivery_id": delivery_id})

    async def show_schedule(self, *, schedule_id: str) -> ScheduleResponse:
        """A schedule.

        Args:
            schedule_id: The schedule's id.

        Returns:
            A schedule in its present state.
        """
        return await self._transport.call("show_schedule", {"schedule_id": schedule_id})


class KeyMethods:
    """A person's own API keys."""

    def __init__(self, transport: CallTransport) -> None:
        self._transport = transport

    async def list_api_keys(self) -> KeyListResponse:
        """One's own keys, the newest first.

        Returns:
            The person's own keys, the newest first.
        """
        return await self._transport.call("list_api_keys", {})

    async def create_api_key(
        self,
        *,
        name: str,
        scopes: Sequence[str] = (
            "tasks.read",
            "tasks.write",
            "memories.read",
            "memories.write",
        ),
        expires_in_days: int | None = None,
    ) -> NewKeyResponse:
        """Make a key; it is told this once.

        Args:
            name: The name, at most 100 characters.
            scopes: What it may do.
            expires_in_days: For how long it works; for ever when left out.

        Returns:
            The new key.
        """
        return await self._transport.call(
            "create_api_key", {"name": name, "scopes": scopes, "expires_in_days": expires_in_days}
        )

    async def update_api_key(
        self,
        *,
        key_id: str,
        name: str | Unset | None = UNSET,
        is_active: bool | Unset | None = UNSET,
        scopes: Sequence[str] | Unset | None = UNSET,
    ) -> SingleKeyResponse:
        """Rename a key, switch it off or on, or let it do more or less.

        A parameter that is left out changes nothing; None removes a value.

        Args:
            key_id: The key's id.
            name: The name, at most 100 characters.
            is_active: One that is not active does not work until it is again.
            scopes: The scopes, at most 100.

        Returns:
            One of the person's own keys.
        """
        return await self._transport.call(
            "update_api_key", {"key_id": key_id, "name": name, "is_active": is_active, "scopes": scopes}
        )

    async def delete_api_key(self, *, key_id: str) -> DeletedKeyResponse:
        """End a key for good.

        Args:
            key_id: The key's id.

        Returns:
            The deleted key, which no longer works.
        """
        return await self._transport.call("delete_api_key", {"key_id": key_id})

    async def rotate_api_key(self, *, key_id: str, overlap_hours: int = 24) -> NewKeyResponse:
        """Put a new key in the place of one; it is told this once.

        Args:
            key_id: The key's id.
            overlap_hours: For how long the old one still works.

        Returns:
            The new key.
        """
        return await self._transport.call("rotate_api_key", {"key_id": key_id, "overlap_hours": overlap_hours})


class PersonMethods:
    """A person's settings and statistics, and all of their data."""

    def __init__(self, transport: CallTransport) -> None:
        self._transport = transport

    async def get_system_status(
        self, *, include_recent_errors: bool = True, check_connectivity: bool = True
    ) -> SystemStatusAnswer:
        """How the desk is doing.

        Args:
            include_recent_errors: Name your own calls of the last day that went wrong.
            check_connectivity: Ask the parts that we depend on whether they answer.

        Returns:
            `parts` is empty if they were not checked. The errors are the person's own, the latest first.
        """
        return await self._transport.call(
            "get_system_status",
            {"include_recent_errors": include_recent_errors, "check_connectivity": check_connectivity},
        )

    async def show_settings(self) -> PersonSettingsResponse:
        """In which time zone one lives.

        Returns:
            The person's time zone by its IANA name. It decides what a day or a time without a zone means.
        """
        return await self._transport.call("show_settings", {})

    async def update_settings(self, *, timezone: str) -> PersonSettingsResponse:
        """Say in which time zone one lives.

        Args:
            timezone: Time zone as an IANA name, e.g. Europe/Berlin; yours if left out.

        Returns:
            The person's time zone by its IANA name. It decides what a day or a time without a zone means.
        """
        return await self._transport.call("update_settings", {"timezone": timezone})

    async def export_data(self) -> ExportResponse:
        """Everything that is kept of oneself.

        Returns:
            Everything that is stored of a person, by table; and what other parts store of them.
        """
        return await self._transport.call("export_data", {})

    async def erase_data(self, *, confirm: Literal["erase"]) -> EraseResponse:
        """Erase everything that is kept of oneself; there is no way back.

        Args:
            confirm: The confirm.

        Returns:
            How many records of each kind were deleted; `left` says what was not.
        """
        return await self._transport.call("erase_data", {"confirm": confirm})

    async def show_stats(self, *, timezone: str | None = None) -> PersonStatsResponse:
        """How everything stands, in numbers.

        Args:
            timezone: The timezone, at most 64 characters.

        Returns:
            Statistics of all records.
        """
        return await self._transport.call("show_stats", {"timezone": timezone})


class TaskMethods:
    """A person's tasks, their subtasks and their relations."""

    def __init__(self, transport: CallTransport) -> None:
        self._transport = transport

    async def create_task(
        self,
        *,
        title: str,
        description: str | None = None,
        status: TaskStatusValue | None = None,
        priority: PriorityValue | None = None,
        category: str | None = None,
        due_date: str | None = None,
        estimated_duration: int | None = None,
        assignee: str | None = None,
        tags: Sequence[str] | None = None,
        notes: str | None = None,
        timezone: str | None = None,
    ) -> TaskAnswer:
        """Make a task.

        Args:
            title: The title, at most 200 characters.
            description: The description, at most 100,000 characters.
            status: The status.
            priority: The priority.
            category: A category's name or id.
            due_date: When it is due: a day means its end.
            estimated_duration: In minutes.
            assignee: A person, or an agent's name or id: an agent is woken when it is due.
            tags: The tags, at most 50.
            notes: The notes, at most 100,000 characters.
            timezone: The timezone, at most 64 characters.

        Returns:
            One task.
        """
        return await self._transport.call(
            "create_task",
            {
                "title": title,
                "description": description,
                "status": status,
                "priority": priority,
                "category": category,
                "due_date": due_date,
                "estimated_duration": estimated_duration,
                "assignee": assignee,
                "tags": tags,
                "notes": notes,
                "timezone": timezone,
            },
        )

    async def search_tasks(
        self,
        *,
        limit: int = 20,
        offset: int = 0,
        status: TaskStatusValue | None = None,
        priority: PriorityValue | None = None,
        category: str | None = None,
        assignee: str | None = None,
        due_after: str | None = None,
        due_before: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        timezone: str | None = None,
        updated_today: bool | None = None,
        overdue: bool | None = None,
        sort_order: Literal["asc", "desc"] = "desc",
        keyword: str | None = None,
        tags: Sequence[str] | None = None,
        sort_by: Literal["created_at", "due_date", "priority", "updated_at", "title"] = "created_at",
    ) -> TasksAnswer:
        """Tasks.

        Args:
            limit: At most so many.
            offset: Leave out so many first.
            status: The status.
            priority: The priority.
            category: A category's name or id.
            assignee: The assignee, at most 300 characters.
            due_after: The due after, at most 64 characters.
            due_before: The due before, at most 64 characters.
            created_after: The created after, at most 64 characters.
            created_before: The created before, at most 64 characters.
            timezone: The timezone, at most 64 characters.
            updated_today: Yes or no: updated today.
            overdue: Yes or no: overdue.
            sort_order: The sort order.
            keyword: Words that occur in it.
            tags: All of these.
            sort_by: The sort by.

        Returns:
            A page of tasks.
        """
        return await self._transport.call(
            "search_tasks",
            {
                "limit": limit,
                "offset": offset,
                "status": status,
                "priority": priority,
                "category": category,
                "assignee": assignee,
                "due_after": due_after,
                "due_before": due_before,
                "created_after": created_after,
                "created_before": created_before,
                "timezone": timezone,
                "updated_today": updated_today,
                "overdue": overdue,
                "sort_order": sort_order,
                "keyword": keyword,
                "tags": tags,
                "sort_by": sort_by,
            },
        )

    async def get_task(self, *, id: str) -> TaskAnswer:
        """A task.

        Args:
            id: Its id.

        Returns:
            One task.
        """
        return await self._transport.call("get_task", {"id": id})

    async def update_task(
        self,
        *,
        id: str,
        description: str | None = None,
        status: TaskStatusValue | None = None,
        priority: PriorityValue | None = None,
        category: str | None = None,
        due_date: str | None = None,
        estimated_duration: int | None = None,
        assignee: str | None = None,
        tags: Sequence[str] | None = None,
        notes: str | None = None,
        title: str | None = None,
        progress: int | None = None,
        timezone: str | None = None,
    ) -> TaskAnswer:
        """Change a task.

        Args:
            id: The id, at most 100 characters.
            description: The description, at most 100,000 characters.
            status: The status.
            priority: The priority.
            category: A category's name or id.
            due_date: When it is due: a day means its end.
            estimated_duration: In minutes.
            assignee: A person, or an agent's name or id: an agent is woken when it is due.
            tags: The tags, at most 50.
            notes: The notes, at most 100,000 characters.
            title: The title, at most 200 characters.
            progress: The progress, 0 to 100.
            timezone: The timezone, at most 64 characters.

        Returns:
            One task.
        """
        return await self._transport.call(
            "update_task",
            {
                "id": id,
                "description": description,
                "status": status,
                "priority": priority,
                "category": category,
                "due_date": due_date,
                "estimated_duration": estimated_duration,
                "assignee": assignee,
                "tags": tags,
                "notes": notes,
                "title": title,
                "progress": progress,
                "timezone": timezone,
            },
        )

    async def get_task_stats(self) -> TaskStatsAnswer:
        """How the tasks stand, in numbers.

        Returns:
            Statistics of tasks.
        """
        return await self._transport.call("get_task_stats", {})

    async def get_task_updates_for_today(self, *, timezone: str | None = None) -> TasksUpdatedAnswer:
        """Tasks that were changed today, or between two dates.

        Args:
            timezone: The timezone, at most 64 characters.

        Returns:
            The tasks that changed in a range of time.
        """
        return await self._transport.call("get_task_updates_for_today", {"timezone": timezone})

    async def get_task_updates_for_date(self, *, date: str, timezone: str | None = None) -> TasksUpdatedAnswer:
        """Tasks that were changed on a day.

        Args:
            date: The day, as YYYY-MM-DD.
            timezone: The timezone, at most 64 characters.

        Returns:
            The tasks that changed in a range of time.
        """
        return await self._transport.call("get_task_updates_for_date", {"date": date, "timezone": timezone})

    async def task_tree(
        self,
        *,
        task_id: str,
        max_depth: int = 5,
        include_completed: bool = True,
        format: Literal["flat", "tree"] = "flat",
    ) -> TaskTreeResponse:
        """A task and what is under it.

        Args:
            task_id: The task's id.
            max_depth: How many levels under the task.
            include_completed: Yes or no: include completed.
            format: One after another, each before its own, or each within its parent.

        Returns:
            A task and its descendants: as a list, or as a tree.
        """
        return await self._transport.call(
            "task_tree",
            {"task_id": task_id, "max_depth": max_depth, "include_completed": include_completed, "format": format},
        )

    async def set_task_status(
        self,
        *,
        task_id: str,
        status: TaskStatusValue,
        notes: str | Unset | None = UNSET,
        progress: int | Unset | None = UNSET,
    ) -> TaskResponse:
        """Say how a task stands.

        A parameter that is left out changes nothing; None removes a value.

        Args:
            task_id: The task's id.
            status: The status.
            notes: Goes after the description.
            progress: The progress, 0 to 100.

        Returns:
            A task in the format of apps: the fields that they write are under `content`, all others beside it.
        """
        return await self._transport.call(
            "set_task_status", {"task_id": task_id, "status": status, "notes": notes, "progress": progress}
        )

    async def delete_task(self, *, task_id: str) -> DeletedResponse:
        """Delete a task, with its subtasks and the time spent on them.

        Args:
            task_id: The task's id.

        Returns:
            The record with this id was deleted.
        """
        return await self._transport.call("delete_task", {"task_id": task_id})

    async def list_subtasks(self, *, parent_task_id: str) -> list[TaskResponse]:
        """The subtasks of a task, in their order.

        Args:
            parent_task_id: The parent task's id, at most 100 characters.

        Returns:
            A list: A task in the format of apps: the fields that they write are under `content`, all others beside it.
        """
        return await self._transport.call("list_subtasks", {"parent_task_id": parent_task_id})

    async def create_subtask(
        self,
        *,
        content: NewTaskContent | Mapping[str, Any],
        parent_task_id: str,
        type: Literal["task"] = "task",
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        timezone: str | None = None,
    ) -> TaskResponse:
        """Make a subtask.

        Args:
            content: The content.
            parent_task_id: The parent task's id, at most 100 characters.
            type: The type.
            tags: The tags, at most 50.
            metadata: The metadata.
            timezone: The timezone, at most 64 characters.

        Returns:
            A task in the format of apps: the fields that they write are under `content`, all others beside it.
        """
        return await self._transport.call(
            "create_subtask",
            {
                "content": content,
                "parent_task_id": parent_task_id,
                "type": type,
                "tags": tags,
                "metadata": metadata,
                "timezone": timezone,
            },
        )

    async def reorder_subtasks(self, *, parent_task_id: str, task_ids: Sequence[str]) -> list[TaskResponse]:
        """Put subtasks in another order.

        Args:
            parent_task_id: The parent task's id, at most 100 characters.
            task_ids: The task ids, at most 1,000.

        Returns:
            A list: A task in the format of apps: the fields that they write are under `content`, all others beside it.
        """
        return await self._transport.call("reorder_subtasks", {"parent_task_id": parent_task_id, "task_ids": task_ids})

    async def list_relations(self, *, task_id: str | None = None) -> RelationListResponse:
        """What tasks are to each other: all, or those in which one has a part.

        Args:
            task_id: The task's id, at most 100 characters.

        Returns:
            The relations of tasks.
        """
        return await self._transport.call("list_relations", {"task_id": task_id})

    async def create_relation(
        self, *, task_id: str, related_task_id: str, relation: TaskRelationValue
    ) -> RelationResponse:
        """Say what a task is to another.

        Args:
            task_id: The task's id, at most 100 characters.
            related_task_id: The related task's id, at most 100 characters.
            relation: The relation.

        Returns:
            The relation of one task to another.
        """
        return await self._transport.call(
            "create_relation", {"task_id": task_id, "related_task_id": related_task_id, "relation": relation}
        )

    async def delete_relation(self, *, relation_id: str) -> DeletedResponse:
        """Take a relation away.

        Args:
            relation_id: The relation's id.

        Returns:
            The record with this id was deleted.
        """
        return await self._transport.call("delete_relation", {"relation_id": relation_id})


class MemoryMethods:
    """What is remembered for a person."""

    def __init__(self, transport: CallTransport) -> None:
        self._transport = transport

    async def add_memory(
        self,
        *,
        note: str,
        title: str | None = None,
        memory_type: MemoryTypeValue | None = None,
        emotion_valence: int | None = None,
        emotion_arousal: int | None = None,
        energy_delta: int | None = None,
        place_name: str | None = None,
        is_highlight: bool | None = None,
        salience_score: float | None = None,
        category_id: str | None = None,
        tags: Sequence[str] | None = None,
        expires_at: str | None = None,
        latitude: float | None = None,
        longitude: float | None = None,
        happened_range: HappenedRange | Mapping[str, Any] | None = None,
        captured_at: str | None = None,
        supersedes: str | None = None,
    ) -> MemoryAnswer:
        """Remember something.

        Args:
            note: What is to be remembered, understandable by itself.
            title: The title, at most 500 characters.
            memory_type: The memory type.
            emotion_valence: From -5, very bad, to 5, very good.
            emotion_arousal: From 0, calm, to 5, stirred.
            energy_delta: What it took (-5) or gave (5).
            place_name: The place name, at most 300 characters.
            is_highlight: Yes or no: highlight.
            salience_score: How much it matters, from 0 to 1.
            category_id: A category's id or name.
            tags: The tags, at most 50.
            expires_at: When it is no longer true; it is kept, and no longer found.
            latitude: The latitude, -90 to 90.
            longitude: The longitude, -180 to 180.
            happened_range: When it happened, if not when it was captured.
            captured_at: The captured at, at most 64 characters.
            supersedes: The id of a memory that this one replaces: that one is kept, and no longer found.

        Returns:
            One memory.
        """
        return await self._transport.call(
            "add_memory",
            {
                "note": note,
                "title": title,
                "memory_type": memory_type,
                "emotion_valence": emotion_valence,
                "emotion_arousal": emotion_arousal,
                "energy_delta": energy_delta,
                "place_name": place_name,
                "is_highlight": is_highlight,
                "salience_score": salience_score,
                "category_id": category_id,
                "tags": tags,
                "expires_at": expires_at,
                "latitude": latitude,
                "longitude": longitude,
                "happened_range": happened_range,
                "captured_at": captured_at,
                "supersedes": supersedes,
            },
        )

    async def search_memories(
        self,
        *,
        limit: int = 20,
        offset: int = 0,
        memory_type: MemoryTypeValue | None = None,
        status: MemoryStatusValue | None = None,
        is_highlight: bool | None = None,
        search: str | None = None,
        tags: Sequence[str] | None = None,
        place_name: str | None = None,
        min_emotion_valence: int | None = None,
        max_emotion_valence: int | None = None,
        min_salience: float | None = None,
        captured_from: str | None = None,
        captured_to: str | None = None,
        near_lat: float | None = None,
        near_lng: float | None = None,
        distance_km: float | None = None,
        category_id: str | None = None,
        sort_by: Literal["captured_at", "happened_at", "salience_score", "emotion_valence", "updated_at"] | None = None,
        sort_order: Literal["asc", "desc"] = "desc",
    ) -> MemoriesAnswer:
        """Find memories by words and by meaning.

        Args:
            limit: At most so many.
            offset: Leave out so many first.
            memory_type: The memory type.
            status: The status.
            is_highlight: Yes or no: highlight.
            search: What they are about, in plain words: found by words and meaning.
            tags: Any of these, comma separated.
            place_name: The place name, at most 300 characters.
            min_emotion_valence: The min emotion valence, -5 to 5.
            max_emotion_valence: The max emotion valence, -5 to 5.
            min_salience: The min salience, 0 to 1.
            captured_from: The captured from, at most 64 characters.
            captured_to: The captured to, at most 64 characters.
            near_lat: The near lat, -90 to 90.
            near_lng: The near lng, -180 to 180.
            distance_km: The distance km.
            category_id: A category's id or name.
            sort_by: The best match first where `search` is given, otherwise the last captured.
            sort_order: The sort order.

        Returns:
            A page of memories.
        """
        return await self._transport.call(
            "search_memories",
            {
                "limit": limit,
                "offset": offset,
                "memory_type": memory_type,
                "status": status,
                "is_highlight": is_highlight,
                "search": search,
                "tags": tags,
                "place_name": place_name,
                "min_emotion_valence": min_emotion_valence,
                "max_emotion_valence": max_emotion_valence,
                "min_salience": min_salience,
                "captured_from": captured_from,
                "captured_to": captured_to,
                "near_lat": near_lat,
                "near_lng": near_lng,
                "distance_km": distance_km,
                "category_id": category_id,
                "sort_by": sort_by,
                "sort_order": sort_order,
            },
        )

    async def list_memories(
        self,
        *,
        limit: int = 50,
        offset: int = 0,
        memory_type: MemoryTypeValue | None = None,
        status: MemoryStatusValue | None = None,
        is_highlight: bool | None = None,
        search: str | None = None,
        tags: Sequence[str] | None = None,
        place_name: str | None = None,
        min_emotion_valence: int | None = None,
        max_emotion_valence: int | None = None,
        min_salience: float | None = None,
        captured_from: str | None = None,
        captured_to: str | None = None,
        near_lat: float | None = None,
        near_lng: float | None = None,
        distance_km: float | None = None,
        category_id: str | None = None,
        sort_by: Literal["captured_at", "happened_at", "salience_score", "emotion_valence", "updated_at"] | None = None,
        sort_order: Literal["asc", "desc"] = "desc",
        timezone: str | None = None,
        include_superseded: bool = False,
        include_expired: bool = False,
    ) -> list[Memory]:
        """Memories.

        Args:
            limit: At most so many.
            offset: Leave out so many first.
            memory_type: The memory type.
            status: The status.
            is_highlight: Yes or no: highlight.
            search: What they are about, in plain words: found by words and meaning.
            tags: One of these at least, with commas between them.
            place_name: The place name, at most 300 characters.
            min_emotion_valence: The min emotion valence, -5 to 5.
            max_emotion_valence: The max emotion valence, -5 to 5.
            min_salience: The min salience, 0 to 1.
            captured_from: The captured from, at most 64 characters.
            captured_to: The captured to, at most 64 characters.
            near_lat: The near lat, -90 to 90.
            near_lng: The near lng, -180 to 180.
            distance_km: The distance km.
            category_id: A category's id or name.
            sort_by: The best match first where `search` is given, otherwise the last captured.
            sort_order: The sort order.
            timezone: The timezone, at most 64 characters.
            include_superseded: Yes or no: include superseded.
            include_expired: Yes or no: include expired.

        Returns:
            A list: A memory. A superseded or expired one is kept, and found only on request.
        """
        return await self._transport.call(
            "list_memories",
            {
                "limit": limit,
                "offset": offset,
                "memory_type": memory_type,
                "status": status,
                "is_highlight": is_highlight,
                "search": search,
                "tags": tags,
                "place_name": place_name,
                "min_emotion_valence": min_emotion_valence,
                "max_emotion_valence": max_emotion_valence,
                "min_salience": min_salience,
                "captured_from": captured_from,
                "captured_to": captured_to,
                "near_lat": near_lat,
                "near_lng": near_lng,
                "distance_km": distance_km,
                "category_id": category_id,
                "sort_by": sort_by,
                "sort_order": sort_order,
                "timezone": timezone,
                "include_superseded": include_superseded,
                "include_expired": include_expired,
            },
        )

    async def get_memory(self, *, id: str) -> MemoryAnswer:
        """A memory.

        Args:
            id: Its id.

        Returns:
            One memory.
        """
        return await self._transport.call("get_memory", {"id": id})

    async def update_memory(
        self,
        *,
        id: str,
        title: str | None = None,
        memory_type: MemoryTypeValue | None = None,
        emotion_valence: int | None = None,
        emotion_arousal: int | None = None,
        energy_delta: int | None = None,
        place_name: str | None = None,
        is_highlight: bool | None = None,
        salience_score: float | None = None,
        category_id: str | None = None,
        tags: Sequence[str] | None = None,
        expires_at: str | None = None,
        note: str | None = None,
    ) -> MemoryAnswer:
        """Change a memory.

        Args:
            id: The id, at most 100 characters.
            title: The title, at most 500 characters.
            memory_type: The memory type.
            emotion_valence: From -5, very bad, to 5, very good.
            emotion_arousal: From 0, calm, to 5, stirred.
            energy_delta: What it took (-5) or gave (5).
            place_name: The place name, at most 300 characters.
            is_highlight: Yes or no: highlight.
            salience_score: How much it matters, from 0 to 1.
            category_id: A category's id or name.
            tags: The tags, at most 50.
            expires_at: When it is no longer true; it is kept, and no longer found.
            note: The note, at most 100,000 characters.

        Returns:
            One memory.
        """
        return await self._transport.call(
            "update_memory",
            {
                "id": id,
                "title": title,
                "memory_type": memory_type,
                "emotion_valence": emotion_valence,
                "emotion_arousal": emotion_arousal,
                "energy_delta": energy_delta,
                "place_name": place_name,
                "is_highlight": is_highlight,
                "salience_score": salience_score,
                "category_id": category_id,
                "tags": tags,
                "expires_at": expires_at,
                "note": note,
            },
        )

    async def delete_memory(self, *, id: str) -> DeletedAnswer:
        """Delete a memory; it is kept, and found again with status=deleted.

        Args:
            id: Its id.

        Returns:
            A deleted memory.
        """
        return await self._transport.call("delete_memory", {"id": id})

    async def get_memory_stats(self) -> MemoryStatsAnswer:
        """What is remembered, in numbers.

        Returns:
            Statistics of memories.
        """
        return await self._transport.call("get_memory_stats", {})

    async def list_anchors(self, *, memory_id: str) -> AnchorListResponse:
        """What a memory is anchored to.

        Args:
            memory_id: The memory's id.

        Returns:
            The items that a memory is anchored to.
        """
        return await self._transport.call("list_anchors", {"memory_id": memory_id})

    async def add_anchor(
        self,
        *,
        memory_id: str,
        anchor_item_id: str,
        relation: AnchorRelationValue | None = None,
        local_start: str | None = None,
        local_end: str | None = None,
        weight: float | None = None,
        notes: str | None = None,
        timezone: str | None = None,
    ) -> AnchorResponse:
        """Anchor a memory to a task, an activity or another item.

        Args:
            memory_id: The memory's id.
            anchor_item_id: The anchor item's id, at most 100 characters.
            relation: about, unless said otherwise.
            local_start: The local start, at most 64 characters.
            local_end: The local end, at most 64 characters.
            weight: The weight, 0 to 10.
            notes: The notes, at most 100,000 characters.
            timezone: The timezone, at most 64 characters.

        Returns:
            The item that a memory is anchored to, and how.
        """
        return await self._transport.call(
            "add_anchor",
            {
                "memory_id": memory_id,
                "anchor_item_id": anchor_item_id,
                "relation": relation,
                "local_start": local_start,
                "local_end": local_end,
                "weight": weight,
                "notes": notes,
                "timezone": timezone,
            },
        )

    async def remove_anchor(
        self, *, memory_id: str, item_id: str, relation: AnchorRelationValue | None = None
    ) -> DoneResponse:
        """Take a memory's anchors to an item away, or the one of a relation.

        Args:
            memory_id: The memory's id.
            item_id: The item's id.
            relation: The relation.

        Returns:
            The request succeeded.
        """
        return await self._transport.call(
            "remove_anchor", {"memory_id": memory_id, "item_id": item_id, "relation": relation}
        )

    async def item_anchors(self, *, item_id: str) -> AnchoredListResponse:
        """The memories that are anchored to an item, and how.

        Args:
            item_id: The item's id.

        Returns:
            The memories that are anchored to an item, and how.
        """
        return await self._transport.call("item_anchors", {"item_id": item_id})


class ActivityMethods:
    """A person's activities."""

    def __init__(self, transport: CallTransport) -> None:
        self._transport = transport

    async def create_activity(
        self,
        *,
        title: str,
        activity_type: ActivityTypeValue,
        description: str | None = None,
        ended_at: str | None = None,
        mood_after: int | None = None,
        energy_after: int | None = None,
        satisfaction_level: int | None = None,
        intensity_level: IntensityValue | None = None,
        notes: str | None = None,
        insights: str | None = None,
        gratitude: str | None = None,
        status: ActivityStatusValue | None = None,
        tags: Sequence[str] | None = None,
        started_at: str | None = None,
        duration_minutes: int | None = None,
        mood_before: int | None = None,
        energy_before: int | None = None,
        location: str | None = None,
        weather: str | None = None,
        companions: Sequence[str] | None = None,
        category_id: str | None = None,
    ) -> ActivityResponse:
        """Write down an activity.

        Args:
            title: The title, at most 500 characters.
            activity_type: The activity type.
            description: The description, at most 100,000 characters.
            ended_at: The ended at, at most 64 characters.
            mood_after: The mood after, 1 to 10.
            energy_after: The energy after, 1 to 10.
            satisfaction_level: The satisfaction level, 1 to 10.
            intensity_level: The intensity level.
            notes: The notes, at most 100,000 characters.
            insights: The insights, at most 100,000 characters.
            gratitude: The gratitude, at most 100,000 characters.
            status: completed, unless said otherwise.
            tags: The tags, at most 50.
            started_at: The started at, at most 64 characters.
            duration_minutes: The duration minutes.
            mood_before: The mood before, 1 to 10.
            energy_before: The energy before, 1 to 10.
            location: The location, at most 300 characters.
            weather: The weather, at most 300 characters.
            companions: The companions, at most 50.
            category_id: A category's id or name.

        Returns:
            An activity.
        """
        return await self._transport.call(
            "create_activity",
            {
                "title": title,
                "activity_type": activity_type,
                "description": description,
                "ended_at": ended_at,
                "mood_after": mood_after,
                "energy_after": energy_after,
                "satisfaction_level": satisfaction_level,
                "intensity_level": intensity_level,
                "notes": notes,
                "insights": insights,
                "gratitude": gratitude,
                "status": status,
                "tags": tags,
                "started_at": started_at,
                "duration_minutes": duration_minutes,
                "mood_before": mood_before,
                "energy_before": energy_before,
                "location": location,
                "weather": weather,
                "companions": companions,
                "category_id": category_id,
            },
        )

    async def search_activities(
        self,
        *,
        limit: int = 20,
        offset: int = 0,
        activity_type: ActivityTypeValue | None = None,
        status: ActivityStatusValue | None = None,
        intensity_level: IntensityValue | None = None,
        min_satisfaction: int | None = None,
        min_mood_after: int | None = None,
        location: str | None = None,
        from_: str | None = None,
        to: str | None = None,
        search: str | None = None,
        tags: Sequence[str] | None = None,
        category_id: str | None = None,
        sort_by: Literal["started_at", "satisfaction_level", "mood_after", "title", "created_at"] = "started_at",
        sort_order: Literal["asc", "desc"] = "desc",
    ) -> ActivitiesAnswer:
        """Activities.

        Args:
            limit: At most so many.
            offset: Leave out so many first.
            activity_type: The activity type.
            status: The status.
            intensity_level: The intensity level.
            min_satisfaction: The min satisfaction, 1 to 10.
            min_mood_after: The min mood after, 1 to 10.
            location: The location, at most 300 characters.
            from_: Begun on or after this.
            to: Begun on or before this.
            search: The search, at most 300 characters.
            tags: Any of these, comma separated.
            category_id: A category's id or name.
            sort_by: The sort by.
            sort_order: The sort order.

        Returns:
            A page of activities.
        """
        return await self._transport.call(
            "search_activities",
            {
                "limit": limit,
                "offset": offset,
                "activity_type": activity_type,
                "status": status,
                "intensity_level": intensity_level,
                "min_satisfaction": min_satisfaction,
                "min_mood_after": min_mood_after,
                "location": location,
                "from_": from_,
                "to": to,
                "search": search,
                "tags": tags,
                "category_id": category_id,
                "sort_by": sort_by,
                "sort_order": sort_order,
            },
        )

    async def get_activity(self, *, id: str) -> ActivityResponse:
        """An activity.

        Args:
            id: Its id.

        Returns:
            An activity.
        """
        return await self._transport.call("get_activity", {"id": id})

    async def update_activity(
        self,
        *,
        id: str,
        description: str | None = None,
        ended_at: str | None = None,
        mood_after: int | None = None,
        energy_after: int | None = None,
        satisfaction_level: int | None = None,
        intensity_level: IntensityValue | None = None,
        notes: str | None = None,
        insights: str | None = None,
        gratitude: str | None = None,
        status: ActivityStatusValue | None = None,
        tags: Sequence[str] | None = None,
        title: str | None = None,
        activity_type: ActivityTypeValue | None = None,
    ) -> ActivityResponse:
        """Change an activity.

        Args:
            id: The id, at most 100 characters.
            description: The description, at most 100,000 characters.
            ended_at: The ended at, at most 64 characters.
            mood_after: The mood after, 1 to 10.
            energy_after: The energy after, 1 to 10.
            satisfaction_level: The satisfaction level, 1 to 10.
            intensity_level: The intensity level.
            notes: The notes, at most 100,000 characters.
            insights: The insights, at most 100,000 characters.
            gratitude: The gratitude, at most 100,000 characters.
            status: The status.
            tags: The tags, at most 50.
            title: The title, at most 500 characters.
            activity_type: The activity type.

        Returns:
            An activity.
        """
        return await self._transport.call(
            "update_activity",
            {
                "id": id,
                "description": description,
                "ended_at": ended_at,
                "mood_after": mood_after,
                "energy_after": energy_after,
                "satisfaction_level": satisfaction_level,
                "intensity_level": intensity_level,
                "notes": notes,
                "insights": insights,
                "gratitude": gratitude,
                "status": status,
                "tags": tags,
                "title": title,
                "activity_type": activity_type,
            },
        )

    async def delete_activity(self, *, activity_id: str) -> DoneResponse:
        """Delete an activity, with the time spent on it.

        Args:
            activity_id: The activity's id.

        Returns:
            The request succeeded.
        """
        return await self._transport.call("delete_activity", {"activity_id": activity_id})

    async def get_activity_stats(self) -> ActivityStatsAnswer:
        """What was done and how it felt, in numbers.

        Returns:
            Statistics of activities.
        """
        return await self._transport.call("get_activity_stats", {})


class TimelineMethods:
    """A person's timeline, with everything that is on it."""

    def __init__(self, transport: CallTransport) -> None:
        self._transport = transport

    async def get_timeline_items(
        self,
        *,
        type: ItemTypeValue | None = None,
        status: Literal["active", "inactive", "completed", "cancelled", "archived"] | None = None,
        priority: PriorityValue | None = None,
        category_id: str | None = None,
        search: str | None = None,
        tags: Sequence[str] | None = None,
        is_highlight: bool | None = None,
        memory_type: MemoryTypeValue | None = None,
        render_on_timeline: bool | None = None,
        sort_by: Literal[
            "created_at", "updated_at", "title", "priority", "captured_at", "salience_score"
        ] = "created_at",
        sort_order: Literal["asc", "desc"] = "desc",
        limit: int = 50,
        offset: int = 0,
    ) -> ItemsAnswer:
        """Everything, of every kind, in one line.

        Args:
            type: The type.
            status: The status.
            priority: The priority.
            category_id: A category's id or name.
            search: The search, at most 300 characters.
            tags: Any of these, comma separated.
            is_highlight: Yes or no: highlight.
            memory_type: The memory type.
            render_on_timeline: Yes or no: render on timeline.
            sort_by: The sort by.
            sort_order: The sort order.
            limit: The limit, 1 to 100.
            offset: The offset, 0 to 10,000,000.

        Returns:
            A page of items.
        """
        return await self._transport.call(
            "get_timeline_items",
            {
                "type": type,
                "status": status,
                "priority": priority,
                "category_id": category_id,
                "search": search,
                "tags": tags,
                "is_highlight": is_highlight,
                "memory_type": memory_type,
                "render_on_timeline": render_on_timeline,
                "sort_by": sort_by,
                "sort_order": sort_order,
                "limit": limit,
                "offset": offset,
            },
        )

    async def create_timeline_item(
        self,
        *,
        type: ItemTypeValue,
        title: str,
        description: str | None = None,
        start_time: str | None = None,
        end_time: str | None = None,
        category_id: str | None = None,
        tags: Sequence[str] | None = None,
        status: Literal["active", "inactive", "completed", "cancelled", "archived"] | None = None,
        priority: PriorityValue | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> ItemResponse:
        """Put something on the timeline.

        Args:
            type: The type.
            title: The title, at most 500 characters.
            description: The description, at most 100,000 characters.
            start_time: The start time, at most 64 characters.
            end_time: The end time, at most 64 characters.
            category_id: A category's id or name.
            tags: The tags, at most 50.
            status: The status.
            priority: The priority.
            metadata: The metadata.

        Returns:
            A timeline item.
        """
        return await self._transport.call(
            "create_timeline_item",
            {
                "type": type,
                "title": title,
                "description": description,
                "start_time": start_time,
                "end_time": end_time,
                "category_id": category_id,
                "tags": tags,
                "status": status,
                "priority": priority,
                "metadata": metadata,
            },
        )

    async def get_timeline_insights(
        self, *, date_range: Literal["today", "week", "month", "quarter", "year"] = "week", timezone: str | None = None
    ) -> InsightsAnswer:
        """What the days up to today say, in numbers and in words.

        Args:
            date_range: The date range.
            timezone: The timezone, at most 64 characters.

        Returns:
            The insights into a range of time.
        """
        return await self._transport.call("get_timeline_insights", {"date_range": date_range, "timezone": timezone})

    async def search_across_timeline(
        self,
        *,
        query: str,
        include_types: Sequence[ItemTypeValue] | None = None,
        date_from: str | None = None,
        date_to: str | None = None,
        context_depth: int = 2,
        limit: int = 20,
    ) -> TimelineMatchesAnswer:
        """Find anything by words and by meaning, with what lies around it.

        Args:
            query: What it is about, in plain words.
            include_types: The include types, at most 5.
            date_from: The date from, at most 64 characters.
            date_to: The date to, at most 64 characters.
            context_depth: How much of what lies around each match to show.
            limit: The limit, 1 to 100.

        Returns:
            The hits, the best first.
        """
        return await self._transport.call(
            "search_across_timeline",
            {
                "query": query,
                "include_types": include_types,
                "date_from": date_from,
                "date_to": date_to,
                "context_depth": context_depth,
                "limit": limit,
            },
        )

    async def list_highlights(
        self,
        *,
        type: ItemTypeValue | None = None,
        status: Literal["active", "inactive", "completed", "cancelled", "archived"] | None = None,
        priority: PriorityValue | None = None,
        category_id: str | None = None,
        search: str | None = None,
        tags: Sequence[str] | None = None,
        is_highlight: bool | None = None,
        memory_type: MemoryTypeValue | None = None,
        render_on_timeline: bool | None = None,
        sort_by: Literal[
            "created_at", "updated_at", "title", "priority", "captured_at", "salience_score"
        ] = "created_at",
        sort_order: Literal["asc", "desc"] = "desc",
        limit: int = 50,
        offset: int = 0,
        timezone: str | None = None,
        date_from: str | None = None,
        date_to: str | None = None,
    ) -> ItemListResponse:
        """Memories that stand out.

        Args:
            type: The type.
            status: The status.
            priority: The priority.
            category_id: A category's id or name.
            search: The search, at most 300 characters.
            tags: One of these at least, with commas between them.
            is_highlight: Yes or no: highlight.
            memory_type: The memory type.
            render_on_timeline: Yes or no: render on timeline.
            sort_by: The sort by.
            sort_order: The sort order.
            limit: At most so many.
            offset: Leave out so many first.
            timezone: The timezone, at most 64 characters.
            date_from: The date from, at most 64 characters.
            date_to: The date to, at most 64 characters.

        Returns:
            A page of items.
        """
        return await self._transport.call(
            "list_highlights",
            {
                "type": type,
                "status": status,
                "priority": priority,
                "category_id": category_id,
                "search": search,
                "tags": tags,
                "is_highlight": is_highlight,
                "memory_type": memory_type,
                "render_on_timeline": render_on_timeline,
                "sort_by": sort_by,
                "sort_order": sort_order,
                "limit": limit,
                "offset": offset,
                "timezone": timezone,
                "date_from": date_from,
                "date_to": date_to,
            },
        )

    async def list_memory_items(
        self,
        *,
        type: ItemTypeValue | None = None,
        status: Literal["active", "inactive", "completed", "cancelled", "archived"] | None = None,
        priority: PriorityValue | None = None,
        category_id: str | None = None,
        search: str | None = None,
        tags: Sequence[str] | None = None,
        is_highlight: bool | None = None,
        memory_type: MemoryTypeValue | None = None,
        render_on_timeline: bool | None = None,
        sort_by: Literal[
            "created_at", "updated_at", "title", "priority", "captured_at", "salience_score"
        ] = "created_at",
        sort_order: Literal["asc", "desc"] = "desc",
        limit: int = 50,
        offset: int = 0,
        timezone: str | None = None,
        date_from: str | None = None,
        date_to: str | None = None,
    ) -> ItemListResponse:
        """The memories of the timeline.

        Args:
            type: The type.
            status: The status.
            priority: The priority.
            category_id: A category's id or name.
            search: The search, at most 300 characters.
            tags: One of these at least, with commas between them.
            is_highlight: Yes or no: highlight.
            memory_type: The memory type.
            render_on_timeline: Yes or no: render on timeline.
            sort_by: The sort by.
            sort_order: The sort order.
            limit: At most so many.
            offset: Leave out so many first.
            timezone: The timezone, at most 64 characters.
            date_from: The date from, at most 64 characters.
            date_to: The date to, at most 64 characters.

        Returns:
            A page of items.
        """
        return await self._transport.call(
            "list_memory_items",
            {
                "type": type,
                "status": status,
                "priority": priority,
                "category_id": category_id,
                "search": search,
                "tags": tags,
                "is_highlight": is_highlight,
                "memory_type": memory_type,
                "render_on_timeline": render_on_timeline,
                "sort_by": sort_by,
                "sort_order": sort_order,
                "limit": limit,
                "offset": offset,
                "timezone": timezone,
                "date_from": date_from,
                "date_to": date_to,
            },
        )

    async def show_item(self, *, item_id: str) -> ItemResponse:
        """A timeline item.

        Args:
            item_id: The item's id.

        Returns:
            A timeline item.
        """
        return await self._transport.call("show_item", {"item_id": item_id})

    async def update_item(
        self,
        *,
        item_id: str,
        description: str | Unset | None = UNSET,
        start_time: str | Unset | None = UNSET,
        end_time: str | Unset | None = UNSET,
        category_id: str | Unset | None = UNSET,
        tags: Sequence[str] | Unset | None = UNSET,
        status: Literal["active", "inactive", "completed", "cancelled", "archived"] | Unset | None = UNSET,
        priority: PriorityValue | Unset | None = UNSET,
        metadata: Mapping[str, Any] | Unset | None = UNSET,
        title: str | Unset | None = UNSET,
        is_time_consuming: bool | Unset | None = UNSET,
        render_on_timeline: bool | Unset | None = UNSET,
        timezone: str | Unset | None = UNSET,
    ) -> ItemResponse:
        """Change a timeline item, and what stands behind it.

        A parameter that is left out changes nothing; None removes a value.

        Args:
            item_id: The item's id.
            description: The description, at most 100,000 characters.
            start_time: The start time, at most 64 characters.
            end_time: The end time, at most 64 characters.
            category_id: A category's id or name.
            tags: The tags, at most 50.
            status: The status.
            priority: The priority.
            metadata: The metadata.
            title: The title, at most 500 characters.
            is_time_consuming: Yes or no: time consuming.
            render_on_timeline: Yes or no: render on timeline.
            timezone: The timezone, at most 64 characters.

        Returns:
            A timeline item.
        """
        return await self._transport.call(
            "update_item",
            {
                "item_id": item_id,
                "description": description,
                "start_time": start_time,
                "end_time": end_time,
                "category_id": category_id,
                "tags": tags,
                "status": status,
                "priority": priority,
                "metadata": metadata,
                "title": title,
                "is_time_consuming": is_time_consuming,
                "render_on_timeline": render_on_timeline,
                "timezone": timezone,
            },
        )

    async def delete_item(self, *, item_id: str) -> DeletedResponse:
        """Delete a timeline item, and what stands behind it.

        Args:
            item_id: The item's id.

        Returns:
            The record with this id was deleted.
        """
        return await self._transport.call("delete_item", {"item_id": item_id})


class TimeMethods:
    """The time that a person spends on tasks, activities and items."""

    def __init__(self, transport: CallTransport) -> None:
        self._transport = transport

    async def get_day_time_spending(
        self, *, date: str, timezone: str | None = None, user_id: str | None = None
    ) -> DaySpendingAnswer:
        """Where a day went.

        Args:
            date: The day, as YYYY-MM-DD.
            timezone: The timezone, at most 64 characters.
            user_id: You; nobody else's time can be asked for.

        Returns:
            The time of a day.
        """
        return await self._transport.call(
            "get_day_time_spending", {"date": date, "timezone": timezone, "user_id": user_id}
        )

    async def get_task_time_entries(
        self, *, task_id: str, start_date: str | None = None, end_date: str | None = None
    ) -> TimeEntriesAnswer:
        """The time that was spent on one task.

        Args:
            task_id: The task's id, at most 100 characters.
            start_date: The start date, at most 64 characters.
            end_date: The end date, at most 64 characters.

        Returns:
            Time entries and their sum, without running ones.
        """
        return await self._transport.call(
            "get_task_time_entries", {"task_id": task_id, "start_date": start_date, "end_date": end_date}
        )

    async def start_task_timer(self, *, task_id: str, description: str | None = None) -> TimerAnswer:
        """Start a task's timer.

        Args:
            task_id: The task's id, at most 100 characters.
            description: What you are doing.

        Returns:
            A time entry; none if no timer runs.
        """
        return await self._transport.call("start_task_timer", {"task_id": task_id, "description": description})

    async def stop_task_timer(self, *, task_id: str) -> TimerAnswer:
        """Stop a task's timer; no entry where none runs.

        Args:
            task_id: The task's id, at most 100 characters.

        Returns:
            A time entry; none if no timer runs.
        """
        return await self._transport.call("stop_task_timer", {"task_id": task_id})

    async def get_running_timer(self) -> TimerAnswer:
        """The timer that runs, if one does.

        Returns:
            A time entry; none if no timer runs.
        """
        return await self._transport.call("get_running_timer", {})

    async def entries_between(self, *, from_: str, to: str, timezone: str | None = None) -> EntryListResponse:
        """Where time went.

        Args:
            from_: A day (2026-11-20), or an ISO 8601 time (2026-11-20T09:00:00+01:00).
            to: A day (2026-11-20), or an ISO 8601 time (2026-11-20T09:00:00+01:00).
            timezone: The timezone, at most 64 characters.

        Returns:
            Time entries, in the order of time.
        """
        return await self._transport.call("entries_between", {"from_": from_, "to": to, "timezone": timezone})

    async def update_entry(
        self,
        *,
        entry_id: str,
        start_at: str | Unset | None = UNSET,
        end_at: str | Unset | None = UNSET,
        note: str | Unset | None = UNSET,
        timezone: str | Unset | None = UNSET,
    ) -> EntryResponse:
        """Change a time entry.

        A parameter that is left out changes nothing; None removes a value.

        Args:
            entry_id: The entry's id.
            start_at: The start at, at most 64 characters.
            end_at: The end at, at most 64 characters.
            note: The note, at most 100,000 characters.
            timezone: The timezone, at most 64 characters.

        Returns:
            A time entry.
        """
        return await self._transport.call(
            "update_entry",
            {"entry_id": entry_id, "start_at": start_at, "end_at": end_at, "note": note, "timezone": timezone},
        )

    async def delete_entry(self, *, entry_id: str) -> DeletedResponse:
        """Take a time entry away.

        Args:
            entry_id: The entry's id.

        Returns:
            The record with this id was deleted.
        """
        return await self._transport.call("delete_entry", {"entry_id": entry_id})

    async def add_task_entry(
        self, *, start_at: str, end_at: str, item_id: str, note: str | None = None, timezone: str | None = None
    ) -> EntryResponse:
        """Write down time that was spent on one task.

        Args:
            start_at: A day (2026-11-20), or an ISO 8601 time (2026-11-20T09:00:00+01:00).
            end_at: A day (2026-11-20), or an ISO 8601 time (2026-11-20T09:00:00+01:00).
            item_id: The item's id.
            note: The note, at most 100,000 characters.
            timezone: The timezone, at most 64 characters.

        Returns:
            A time entry.
        """
        return await self._transport.call(
            "add_task_entry",
            {"start_at": start_at, "end_at": end_at, "item_id": item_id, "note": note, "timezone": timezone},
        )

    async def activity_entries(
        self, *, item_id: str, start_date: str | None = None, end_date: str | None = None, timezone: str | None = None
    ) -> EntryListResponse:
        """The time that was spent on one activity.

        Args:
            item_id: The item's id.
            start_date: The start date, at most 64 characters.
            end_date: The end date, at most 64 characters.
            timezone: The timezone, at most 64 characters.

        Returns:
            Time entries, in the order of time.
        """
        return await self._transport.call(
            "activity_entries",
            {"item_id": item_id, "start_date": start_date, "end_date": end_date, "timezone": timezone},
        )

    async def add_activity_entry(
        self, *, start_at: str, end_at: str, item_id: str, note: str | None = None, timezone: str | None = None
    ) -> EntryResponse:
        """Write down time that was spent on one activity.

        Args:
            start_at: A day (2026-11-20), or an ISO 8601 time (2026-11-20T09:00:00+01:00).
            end_at: A day (2026-11-20), or an ISO 8601 time (2026-11-20T09:00:00+01:00).
            item_id: The item's id.
            note: The note, at most 100,000 characters.
            timezone: The timezone, at most 64 characters.

        Returns:
            A time entry.
        """
        return await self._transport.call(
            "add_activity_entry",
            {"start_at": start_at, "end_at": end_at, "item_id": item_id, "note": note, "timezone": timezone},
        )

    async def item_entries(
        self, *, item_id: str, start_date: str | None = None, end_date: str | None = None, timezone: str | None = None
    ) -> EntryListResponse:
        """The time that was spent on one item.

        Args:
            item_id: The item's id.
            start_date: The start date, at most 64 characters.
            end_date: The end date, at most 64 characters.
            timezone: The timezone, at most 64 characters.

        Returns:
            Time entries, in the order of time.
        """
        return await self._transport.call(
            "item_entries", {"item_id": item_id, "start_date": start_date, "end_date": end_date, "timezone": timezone}
        )

    async def add_item_entry(
        self, *, start_at: str, end_at: str, item_id: str, note: str | None = None, timezone: str | None = None
    ) -> EntryResponse:
        """Write down time that was spent on one item.

        Args:
            start_at: A day (2026-11-20), or an ISO 8601 time (2026-11-20T09:00:00+01:00).
            end_at: A day (2026-11-20), or an ISO 8601 time (2026-11-20T09:00:00+01:00).
            item_id: The item's id.
            note: The note, at most 100,000 characters.
            timezone: The timezone, at most 64 characters.

        Returns:
            A time entry.
        """
        return await self._transport.call(
            "add_item_entry",
            {"start_at": start_at, "end_at": end_at, "item_id": item_id, "note": note, "timezone": timezone},
        )


class WorkMethods:
    """The queue of work that a person has for agents."""

    def __init__(self, transport: CallTransport) -> None:
        self._transport = transport

    async def get_ai_tasks(
        self,
        *,
        limit: int = 20,
        offset: int = 0,
        agent_id: str | None = None,
        agent_name: str | None = None,
        status: AiStatusValue | None = None,
        mode: AiModeValue | None = None,
        task_type: AiTaskTypeValue | None = None,
        sort_by: Literal["assigned_at", "due_at", "priority", "updated_at"] = "assigned_at",
        sort_order: Literal["asc", "desc"] = "desc",
        is_local_task: bool | None = None,
        executor_workspace_id: str | None = None,
    ) -> AiTasksAnswer:
        """Work for agents, without history.

        Args:
            limit: At most so many.
            offset: Leave out so many first.
            agent_id: The agent's id, at most 300 characters.
            agent_name: The agent name, at most 300 characters.
            status: The status.
            mode: The mode.
            task_type: The task type.
            sort_by: The sort by.
            sort_order: The sort order.
            is_local_task: Yes or no: local task.
            executor_workspace_id: The executor workspace's id, at most 300 characters.

        Returns:
            A page of work.
        """
        return await self._transport.call(
            "get_ai_tasks",
            {
                "limit": limit,
                "offset": offset,
                "agent_id": agent_id,
                "agent_name": agent_name,
                "status": status,
                "mode": mode,
                "task_type": task_type,
                "sort_by": sort_by,
                "sort_order": sort_order,
                "is_local_task": is_local_task,
                "executor_workspace_id": executor_workspace_id,
            },
        )

    async def get_queued_tasks_for_agent(self, *, agent_name: str) -> WaitingAnswer:
        """The work that waits for an agent.

        Args:
            agent_name: The agent's name or id.

        Returns:
            The oldest waiting work, and whether there is more.
        """
        return await self._transport.call("get_queued_tasks_for_agent", {"agent_name": agent_name})

    async def get_ai_task(self, *, id: str) -> AiTaskAnswer:
        """A piece of work, with its history.

        Args:
            id: Its id.

        Returns:
            One piece of work.
        """
        return await self._transport.call("get_ai_task", {"id": id})

    async def accept_ai_task(
        self, *, id: str, estimated_cost_usd: float | None = None, estimated_duration_min: int | None = None
    ) -> AiTaskAnswer:
        """Take this piece of work.

        Args:
            id: The id, at most 100 characters.
            estimated_cost_usd: The estimated cost usd, 0 to 1,000,000,000.0.
            estimated_duration_min: The estimated duration min.

        Returns:
            One piece of work.
        """
        return await self._transport.call(
            "accept_ai_task",
            {"id": id, "estimated_cost_usd": estimated_cost_usd, "estimated_duration_min": estimated_duration_min},
        )

    async def update_ai_task(
        self,
        *,
        id: str,
        status: Literal["in_progress", "completed", "failed", "paused"] | None = None,
        progress_message: str | None = None,
        error_message: str | None = None,
        execution_result: ExecutionResult | Mapping[str, Any] | None = None,
        actual_cost_usd: float | None = None,
        actual_duration_min: int | None = None,
    ) -> AiTaskAnswer:
        """Change a piece of work, or say how it stands.

        Args:
            id: The id, at most 100 characters.
            status: The status.
            progress_message: The progress message, at most 100,000 characters.
            error_message: The error message, at most 100,000 characters.
            execution_result: The execution result.
            actual_cost_usd: The actual cost usd, 0 to 1,000,000,000.0.
            actual_duration_min: The actual duration min.

        Returns:
            One piece of work.
        """
        return await self._transport.call(
            "update_ai_task",
            {
                "id": id,
                "status": status,
                "progress_message": progress_message,
                "error_message": error_message,
                "execution_result": execution_result,
                "actual_cost_usd": actual_cost_usd,
                "actual_duration_min": actual_duration_min,
            },
        )

    async def complete_ai_task(
        self,
        *,
        id: str,
        output: str | None = None,
        artifacts: Sequence[Artifact | Mapping[str, Any]] | None = None,
        logs: Sequence[str] | None = None,
        metrics: Mapping[str, Any] | None = None,
        actual_cost_usd: float | None = None,
        actual_duration_min: int | None = None,
    ) -> AiTaskAnswer:
        """Say that work is done, and what came of it.

        Args:
            id: The id, at most 100 characters.
            output: The output, at most 100,000 characters.
            artifacts: The artifacts, at most 100.
            logs: The logs, at most 1,000.
            metrics: The metrics.
            actual_cost_usd: The actual cost usd, 0 to 1,000,000,000.0.
            actual_duration_min: The actual duration min.

        Returns:
            One piece of work.
        """
        return await self._transport.call(
            "complete_ai_task",
            {
                "id": id,
                "output": output,
                "artifacts": artifacts,
                "logs": logs,
                "metrics": metrics,
                "actual_cost_usd": actual_cost_usd,
                "actual_duration_min": actual_duration_min,
            },
        )

    async def fail_ai_task(self, *, id: str, error_message: str) -> AiTaskAnswer:
        """Say that work could not be done, and why.

        Args:
            id: The id, at most 100 characters.
            error_message: The error message, at most 100,000 characters.

        Returns:
            One piece of work.
        """
        return await self._transport.call("fail_ai_task", {"id": id, "error_message": error_message})

    async def get_ai_task_stats(self) -> AiTaskStatsAnswer:
        """How the work goes, in numbers.

        Returns:
            Statistics of the queue.
        """
        return await self._transport.call("get_ai_task_stats", {})

    async def create_ai_task(
        self,
        *,
        objective: str,
        task_type: AiTaskTypeValue,
        task_id: str,
        agent_id: str,
        agent_name: str | None = None,
        deliverables: str | None = None,
        context: str | None = None,
        acceptance_criteria: str | None = None,
        dependencies: Sequence[str] | None = None,
        mode: AiModeValue | None = None,
        guardrails: GuardrailFields | Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        status: AiStatusValue | None = None,
        priority: PriorityValue | None = None,
        estimated_cost_usd: float | None = None,
        estimated_duration_min: int | None = None,
        is_local_task: bool | None = None,
        executor_workspace_id: str | None = None,
        due_at: str | None = None,
        timezone: str | None = None,
    ) -> AiTaskResponse:
        """Put work into the queue.

        Args:
            objective: The objective, at most 100,000 characters.
            task_type: The task type.
            task_id: The task that it belongs to.
            agent_id: The agent that it is for; the caller is known by other means.
            agent_name: The agent name, at most 200 characters.
            deliverables: The deliverables, at most 100,000 characters.
            context: The context, at most 100,000 characters.
            acceptance_criteria: The acceptance criteria, at most 100,000 characters.
            dependencies: AI tasks that must be completed first.
            mode: The mode.
            guardrails: The guardrails.
            metadata: The metadata.
            status: The status.
            priority: The priority.
            estimated_cost_usd: The estimated cost usd, 0 to 1,000,000,000.0.
            estimated_duration_min: The estimated duration min.
            is_local_task: Yes or no: local task.
            executor_workspace_id: The executor workspace's id, at most 128 characters.
            due_at: The due at, at most 64 characters.
            timezone: The timezone, at most 64 characters.

        Returns:
            A piece of work.
        """
        return await self._transport.call(
            "create_ai_task",
            {
                "objective": objective,
                "task_type": task_type,
                "task_id": task_id,
                "agent_id": agent_id,
                "agent_name": agent_name,
                "deliverables": deliverables,
                "context": context,
                "acceptance_criteria": acceptance_criteria,
                "dependencies": dependencies,
                "mode": mode,
                "guardrails": guardrails,
                "metadata": metadata,
                "status": status,
                "priority": priority,
                "estimated_cost_usd": estimated_cost_usd,
                "estimated_duration_min": estimated_duration_min,
                "is_local_task": is_local_task,
                "executor_workspace_id": executor_workspace_id,
                "due_at": due_at,
                "timezone": timezone,
            },
        )

    async def claim_ai_task(
        self, *, agent_name: str | None = None, lease_seconds: int | None = None
    ) -> OptionalAiTaskResponse:
        """Take the next piece of work of an agent, if there is one.

        Args:
            agent_name: The agent's name or id; not needed where the caller is that agent.
            lease_seconds: The lease seconds, 1 to 86,400.

        Returns:
            The piece of work that was claimed, if there was one.
        """
        return await self._transport.call("claim_ai_task", {"agent_name": agent_name, "lease_seconds": lease_seconds})

    async def delete_ai_task(self, *, ai_task_id: str) -> DeletedResponse:
        """Take work out of the queue for good.

        Args:
            ai_task_id: The ai task's id.

        Returns:
            The record with this id was deleted.
        """
        return await self._transport.call("delete_ai_task", {"ai_task_id": ai_task_id})

    async def approve_ai_task(self, *, ai_task_id: str) -> AiTaskResponse:
        """Let work be executed; for the person alone.

        Args:
            ai_task_id: The ai task's id.

        Returns:
            A piece of work.
        """
        return await self._transport.call("approve_ai_task", {"ai_task_id": ai_task_id})

    async def renew_ai_task(self, *, ai_task_id: str, claims: int, lease_seconds: int | None = None) -> AiTaskResponse:
        """Hold work for longer.

        Args:
            ai_task_id: The ai task's id.
            claims: What `claims` was when it was taken.
            lease_seconds: The lease seconds, 1 to 86,400.

        Returns:
            A piece of work.
        """
        return await self._transport.call(
            "renew_ai_task", {"ai_task_id": ai_task_id, "claims": claims, "lease_seconds": lease_seconds}
        )


class CategoryMethods:
    """A person's categories."""

    def __init__(self, transport: CallTransport) -> None:
        self._transport = transport

    async def get_categories(self) -> CategoryListResponse:
        """Categories by name.

        Returns:
            Categories by name.
        """
        return await self._transport.call("get_categories", {})

    async def create_category(
        self, *, name: str, color: str | None = None, description: str | None = None, icon: str | None = None
    ) -> CategoryResponse:
        """Make a category.

        Args:
            name: The name, at most 50 characters.
            color: #RRGGBB.
            description: The description, at most 100,000 characters.
            icon: The icon, at most 100 characters.

        Returns:
            A category.
        """
        return await self._transport.call(
            "create_category", {"name": name, "color": color, "description": description, "icon": icon}
        )

    async def get_category(self, *, id: str) -> CategoryResponse:
        """A category, by its id or its name.

        Args:
            id: Its id, or its name.

        Returns:
            A category.
        """
        return await self._transport.call("get_category", {"id": id})

    async def update_category(
        self,
        *,
        id: str,
        color: str | None = None,
        description: str | None = None,
        icon: str | None = None,
        name: str | None = None,
    ) -> CategoryResponse:
        """Change a category.

        Args:
            id: Its id, or its name.
            color: #RRGGBB.
            description: The description, at most 100,000 characters.
            icon: The icon, at most 100 characters.
            name: The name, at most 50 characters.

        Returns:
            A category.
        """
        return await self._transport.call(
            "update_category", {"id": id, "color": color, "description": description, "icon": icon, "name": name}
        )

    async def delete_category(self, *, category_id: str) -> DoneResponse:
        """Delete a category; what was under it stays, under none.

        Args:
            category_id: The category's id.

        Returns:
            The request succeeded.
        """
        return await self._transport.call("delete_category", {"category_id": category_id})


class DeskMethods:
    """Everything that can be asked of Frontdesk, by capability."""

    def __init__(self, transport: CallTransport) -> None:
        self._transport = transport
        self.chat = ChatMethods(transport)
        self.tools = ToolMethods(transport)
        self.schedules = ScheduleMethods(transport)
        self.keys = KeyMethods(transport)
        self.person = PersonMethods(transport)
        self.tasks = TaskMethods(transport)
        self.memories = MemoryMethods(transport)
        self.activities = ActivityMethods(transport)
        self.timeline = TimelineMethods(transport)
        self.time = TimeMethods(transport)
        self.work = WorkMethods(transport)
        self.categories = CategoryMethods(transport)

    async def health(self) -> HealthOutput:
        """Whether Frontdesk can serve, and which agent server and database it is set to.

        Returns:
            The state of this installation and its settings.
        """
        return await self._transport.call("health", {})

    async def whoami(self) -> WhoamiOutput:
        """Who Frontdesk takes the caller for.

        Returns:
            The caller as Frontdesk sees it.
        """
        return await self._transport.call("whoami", {})
