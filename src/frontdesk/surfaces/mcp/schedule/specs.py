"""The schedule tools, as they describe themselves to a model that has never heard of them."""

from collections.abc import Awaitable, Callable
from typing import Any

from frontdesk.surfaces.mcp.core import NoArguments
from frontdesk.surfaces.mcp.schedule import asked, changing, executing, looking, making, naming, told
from frontdesk.surfaces.mcp.schedule.failing import saying
from frontdesk.surfaces.mcp.tool import Arguments, Door, ErrorShape, Result, ToolSpec

LIST = (
    "List the prompts you have scheduled for yourself: what you will be told, by which rule, and when next. "
    "Use it before you schedule something that may be there already, and to find the number of a schedule."
)
TIME = (
    "Schedule a message to yourself, once, at a certain time: a reminder, a check, the next step of something long. "
    "At that time you are prompted with it, whether anybody talks with you or not. Plain words are fine for the time. "
    'Example: {"prompt": "Ask Ann how the interview went", "time": "tomorrow at 9 Berlin time"}, or '
    '"time": "2025-12-25T10:00:00Z". The answer repeats the exact time; check it. It comes once: for something that '
    "repeats use promptyoself_schedule_cron or promptyoself_schedule_every."
)
CRON = (
    "Schedule a message to yourself that repeats by the calendar: every day at nine, on weekdays, on the first of the "
    'month. A cron rule of five fields, or plain words. Example: {"prompt": "Write the daily report", '
    '"cron": "0 9 * * MON-FRI", "zone": "Europe/Berlin"}, or "cron": "every weekday at 9 Berlin time". The answer '
    "repeats the exact rule; check it. Make it once: it repeats by itself until it is cancelled."
)
EVERY = (
    "Schedule a message to yourself at a steady interval: every 30 seconds, five minutes, two hours. "
    'Example: {"prompt": "Focus check", "every": "30m", "max_repetitions": 10}. With max_repetitions 1 it is a simple '
    'timer: {"prompt": "Ping me in two minutes", "every": "2m", "max_repetitions": 1}. Plain words are fine. Make it '
    "once: it repeats by itself until it is cancelled."
)
REGISTER = (
    "Schedule a message to yourself by any kind of rule, with every option there is: give exactly one of time (once), "
    'cron (by the calendar) and every (at an interval), each as a rule or in plain words. Example: {"prompt": "Daily '
    'report", "cron": "0 9 * * *", "misfire": "skip"}. Where no option is needed, promptyoself_schedule_time, '
    "promptyoself_schedule_cron and promptyoself_schedule_every are simpler."
)
CANCEL = (
    "Cancel a schedule for good, by its number; promptyoself_list shows the numbers. Nothing of it starts any more. "
    'Example: {"schedule_id": 42}. To stop it for a while use promptyoself_pause.'
)
PAUSE = 'Stop a schedule for a while; promptyoself_resume goes on with it. Example: {"schedule_id": 42}.'
RESUME = (
    "Go on with a schedule that was paused, from its next time on; what fell into the pause is left out, except for a "
    "prompt that comes once and is overdue: that one comes at once. "
    'Example: {"schedule_id": 42}.'
)
UPDATE = (
    "Change a schedule in place: its text, its rule, its limits. What you leave out stays as it is. "
    'Example: {"schedule_id": 42, "cron": "every weekday at 10 Berlin time"}.'
)
RUN_NOW = (
    "Run a schedule once right now, besides its rule; its next time stays as it is. "
    'Example: {"schedule_id": 42}. promptyoself_history tells what came of it.'
)
HISTORY = (
    "What became of past runs, the newest first: delivered, waiting for another try, skipped and why, or dead (given "
    'up), with each attempt and your answer. Example: {"schedule_id": 42, "limit": 5}.'
)
PREVIEW = (
    "The next times at which a schedule, or a rule that you want to try, would fire; nothing is made. "
    'Example: {"cron": "every weekday at 9 Berlin time", "count": 3}, or {"schedule_id": 42}.'
)
EXECUTE = (
    "Run prompts that are due right now and wait for the outcome; your own come when your present turn has ended. Not "
    'needed as a rule: Frontdesk runs them by itself, on time. {"loop": true, "interval": 60} looks again every 60 '
    "seconds for a while, reports progress, and ends when the call is cancelled."
)
TEST = "Whether the server that hosts the agents answers."
AGENTS = "The agents that prompts can be scheduled for, with their ids."
UPLOAD = (
    "Give the Letta server a new tool, as the whole Python source of one function with type hints and a docstring. "
    "For the operator: it runs on that server."
)
STATUS = "Whether the scheduler runs here, how much it has under way, what waits, and what it gave up."
DIAGNOSE = (
    "Which agent a schedule would be for when you name none, and how that was found out. "
    'Use it after "agent_id is required and could not be inferred".'
)
SET_DEFAULT = "Set the agent that stands in for everybody whose calls name none. For the operator alone."
SET_SCOPED = 'Set the agent that stands in when your own calls name none. Example: {"agent_id": "agent-123"}.'
GET_SCOPED = "The agent that stands in when your own calls name none, if one was set."


# What an agent needs to plan for itself; the others are for clients, and every tool costs a model attention.
HANDED = frozenset(
    {"schedule_time", "schedule_cron", "schedule_every", "list", "cancel", "update", "history", "preview"}
)


# What PromptYoSelf does not have: here mistakes are marked as such, which models heed.
OURS = frozenset({"pause", "resume", "update", "run_now", "history", "preview"})


def _spec(
    name: str,
    title: str,
    description: str,
    arguments: type[Arguments],
    answer: type[told.Told],
    run: Callable[..., Awaitable[Result]],
    failure: str,
    **more: Any,  # noqa: ANN401 - fields of `ToolSpec`
) -> ToolSpec:
    return ToolSpec(
        name=f"promptyoself_{name}",
        handed=name in HANDED,
        title=title,
        description=description,
        arguments=arguments,
        answer=answer,
        run=saying(failure, run),
        door=Door.SCHEDULE,
        error_shape=ErrorShape.RESULT if name in OURS else ErrorShape.ANSWER,
        **more,
    )


READS = {"read_only": True}
MAKES = {"read_only": False, "destructive": False}
CHANGES = {"read_only": False, "destructive": True}
# Whatever keeps a schedule from being made is told as it is.
AS_IT_IS = ""

SCHEDULE: tuple[ToolSpec, ...] = (
    _spec("schedule_time", "Schedule once", TIME, asked.AtTime, told.Made, making.make, AS_IT_IS, **MAKES),
    _spec("schedule_cron", "Schedule by cron", CRON, asked.ByCron, told.Made, making.make, AS_IT_IS, **MAKES),
    _spec("schedule_every", "Schedule at intervals", EVERY, asked.Every, told.Made, making.make, AS_IT_IS, **MAKES),
    _spec("register", "Schedule by any rule", REGISTER, asked.Register, told.Made, making.make, AS_IT_IS, **MAKES),
    _spec(
        "list", "List schedules", LIST, asked.Listing, told.Schedules, looking.show, "Failed to list prompts", **READS
    ),
    _spec(
        *("cancel", "Cancel a schedule", CANCEL, asked.Which, told.Cancelled, changing.cancel),
        "Failed to cancel prompt",
        **CHANGES,
    ),
    _spec("pause", "Pause a schedule", PAUSE, asked.Which, told.Stands, changing.pause, "Failed to pause", **MAKES),
    _spec("resume", "Resume a schedule", RESUME, asked.Which, told.Made, changing.resume, "Failed to resume", **MAKES),
    _spec(
        "update", "Change a schedule", UPDATE, asked.Update, told.Made, changing.update, "Failed to update", **CHANGES
    ),
    _spec("run_now", "Run now", RUN_NOW, asked.Which, told.Running, changing.run_now, "Failed to run", **MAKES),
    _spec("history", "Past runs", HISTORY, asked.History, told.Runs, looking.history, "Failed to read", **READS),
    _spec(
        "preview", "Next times", PREVIEW, asked.Upcoming, told.Upcoming, making.preview, "Failed to preview", **READS
    ),
    _spec(
        *("execute", "Run what is due", EXECUTE, asked.Execute, told.Execution, executing.execute),
        "Failed to execute prompts",
        on_line=True,
        **MAKES,
    ),
    _spec(
        *("executor_status", "Scheduler status", STATUS, NoArguments, told.ExecutorStatus, looking.executor_status),
        "Failed to read the status",
        **READS,
    ),
    _spec("test", "Test the agent host", TEST, NoArguments, told.Connection, looking.test, "Failed to test connection"),
    _spec("agents", "List agents", AGENTS, NoArguments, told.Agents, looking.agents, "Failed to list agents", **READS),
    _spec(
        "upload", "Upload a tool", UPLOAD, asked.Upload, told.UploadedTool, looking.upload, "Upload failed", **CHANGES
    ),
    _spec(
        *("inference_diagnostics", "Which agent", DIAGNOSE, NoArguments, told.Diagnostics, naming.diagnose),
        "Failed to diagnose",
        on_line=True,
        any_id=True,
    ),
    _spec(
        *("set_default_agent", "Set everybody's default agent", SET_DEFAULT),
        *(asked.DefaultAgent, told.Default, naming.set_default, "Failed to set the default agent"),
        for_agent=False,
        **CHANGES,
    ),
    _spec(
        *("set_scoped_default_agent", "Set your default agent", SET_SCOPED),
        *(asked.ScopedAgent, told.Default, naming.set_scoped, "Failed to set the default agent"),
        for_agent=False,
        **CHANGES,
    ),
    _spec(
        *("get_scoped_default_agent", "Your default agent", GET_SCOPED),
        *(asked.OfScope, told.Default, naming.get_scoped, "Failed to read the default agent"),
        **READS,
    ),
)
