"""Implements the slash commands of editor sessions."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from frontdesk.agents.host import HeldTool, MemoryBlock, ModelChoice
from frontdesk.app import App
from frontdesk.coding.model import CodingSession
from frontdesk.errors import FrontdeskError, Invalid, NotFound
from frontdesk.identity import rights
from frontdesk.identity.keys import LOCAL_USER
from frontdesk.identity.model import Caller
from frontdesk.interfaces.acp.markdown import code_block, escape_line, inline_code, render_table
from frontdesk.llm.events import Event, MemoryEdit
from frontdesk.llm.tools import describe_validation_errors
from frontdesk.memory.model import PersonScope, Task, TaskStatus
from frontdesk.memory.operations.base import format_time, person_zone
from frontdesk.memory.operations.task_requests import CreateTask
from frontdesk.memory.operations.task_text import format_task_line
from frontdesk.memory.tasks_rules import TaskFilter
from frontdesk.schedules.model import Schedule, ScheduleState
from frontdesk.schedules.requests import ListSchedules, NewSchedule, RuleDescription, SavedSchedule, parse_whole_number
from frontdesk.tools.finder import SearchTools, ToolMatch


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The app, the session and the caller of one command."""

    app: App
    session: CodingSession
    caller: Caller


@dataclass(frozen=True, slots=True)
class CommandReply:
    """A command's answer as Markdown, and events to show with it, such as a `MemoryEdit`.

    `change` is the changed session, where the command changes its model or effort.
    """

    text: str
    events: Sequence[Event] = ()
    change: CodingSession | None = None


# Runs a command, given the text after its name.
RunCommand = Callable[[CommandContext, str], Awaitable[CommandReply]]


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A command; `hint` describes the text after its name, and is empty where there is none."""

    name: str
    description: str
    run: RunCommand
    hint: str = ""


MAX_TURNS = 1000
NOTHING_TO_COMPACT = "There is too little to sum up yet; nothing has changed."
COMPACTED = "What was said so far is summed up; the agent goes on from the summary."
SHORTENED = (
    "There is no model that could sum up what was said so far; the agent goes on from your own words, shortened."
)
CANNOT_REWIND = "The agents' host keeps what was said; turns cannot be taken back here. Begin a new session instead."


async def run_compact(context: CommandContext, _argument: str) -> CommandReply:
    rights.require_scope(context.caller, rights.AGENTS_CHAT)
    kept = context.session
    done = await context.app.host.compact(kept.agent_id, kept.conversation_id, kept.user_id)
    if done is None:
        return CommandReply(NOTHING_TO_COMPACT)
    return CommandReply(COMPACTED if done.by_model else SHORTENED, (done,))


async def run_rewind(context: CommandContext, argument: str) -> CommandReply:
    rights.require_scope(context.caller, rights.AGENTS_CHAT)
    wanted = parse_whole_number(argument.strip() or "1")
    if wanted is None or not 1 <= wanted <= MAX_TURNS:
        raise Invalid(f"Say how many turns to take back, from 1 to {MAX_TURNS}: /rewind 2")
    if not context.app.host.features.can_rewind:
        return CommandReply(CANNOT_REWIND)
    kept = context.session
    gone = await context.app.host.rewind(kept.agent_id, kept.conversation_id, wanted, kept.user_id)
    if not gone:
        return CommandReply("There is no turn to take back.")
    turns = "The newest turn is" if gone == 1 else f"The newest {gone} turns are"
    return CommandReply(f"{turns} forgotten, though still shown above. Files and memory stay as they are.")


async def run_model(context: CommandContext, argument: str) -> CommandReply:
    offered = await context.app.host.models()
    name = argument.strip()
    return (
        _change_model(context, _find_model(offered, name))
        if name
        else CommandReply(await _model_table(context, offered))
    )


async def _model_table(context: CommandContext, offered: Sequence[ModelChoice]) -> str:
    agent = await context.app.host.find(context.session.agent_id)
    own = agent.model if agent is not None else None
    used = context.session.model or own or (offered[0].name if offered else "")
    others = () if not used or any(one.name == used for one in offered) else (ModelChoice(used),)
    rows = [_model_row(one, used=one.name == used) for one in (*offered, *others)]
    return render_table(("model", "", "efforts", ""), rows) if rows else "The agents' host names no models."


def _change_model(context: CommandContext, chosen: ModelChoice) -> CommandReply:
    """Change the model; the effort stays if the new model has it too."""
    effort = context.session.effort if context.session.effort in chosen.efforts else None
    kept = replace(context.session, model=chosen.name, effort=effort)
    return CommandReply(f"This session now thinks with {inline_code(chosen.name)}.", change=kept)


def _find_model(offered: Sequence[ModelChoice], name: str) -> ModelChoice:
    """The model with this name or title, or the only model whose name contains it."""
    wanted = name.casefold()
    exact = [one for one in offered if wanted in (one.name.casefold(), one.title.casefold())]
    found = exact[:1] or [one for one in offered if wanted in one.name.casefold()]
    if len(found) == 1:
        return found[0]
    if found:
        raise Invalid(f"Several models match: {', '.join(one.name for one in found)}; give more of the name")
    raise NotFound(f"There is no model '{name[:100]}'; /model lists all models")


def _model_row(one: ModelChoice, *, used: bool) -> tuple[str, ...]:
    efforts = escape_line(", ".join(one.efforts))
    return (
        inline_code(one.name),
        escape_line("" if one.title == one.name else one.title),
        efforts,
        "in use" if used else "",
    )


DEFAULT_BLOCK = "human"
MAX_FORGOTTEN = 5
LABELLED_TEXT = re.compile(r"([^:\n]+):\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class BlockCut:
    """A block, and the lines that are removed from it."""

    block: MemoryBlock
    removed: Sequence[str]
    remaining: str


async def run_memory(context: CommandContext, argument: str) -> CommandReply:
    blocks = await _memory_blocks(context)
    label = argument.strip()
    wanted = [_find_block(blocks, label)] if label else list(blocks.values())
    return CommandReply("\n\n".join(_describe_block(context, block) for block in wanted) or "It has no memory blocks.")


async def run_remember(context: CommandContext, argument: str) -> CommandReply:
    rights.require_scope(context.caller, rights.AGENTS_CHAT)
    blocks = await _memory_blocks(context)
    label, text = _split_label(blocks, argument)
    if not text:
        raise Invalid("Say what to remember: /remember I work in Berlin")
    block = _find_block(blocks, label or DEFAULT_BLOCK)
    value = f"{block.value.rstrip()}\n{text}" if block.value.strip() else text
    edit = await _write_block(context, block, value)
    return CommandReply(f"Remembered in {inline_code(block.label)}: {escape_line(text)}", (edit,))


async def run_forget(context: CommandContext, argument: str) -> CommandReply:
    rights.require_scope(context.caller, rights.AGENTS_CHAT)
    blocks = await _memory_blocks(context)
    label, text = _split_label(blocks, argument)
    if not text:
        raise Invalid("Say what to forget, in words that stand in it: /forget Berlin")
    chosen = [_find_block(blocks, label)] if label else list(blocks.values())
    cuts = [cut for block in chosen if not block.read_only and (cut := _cut_block(block, text)).removed]
    if not cuts:
        return CommandReply(
            f"No line that can be changed holds the words {inline_code(text)}. `/memory` shows all of them."
        )
    number = sum(len(cut.removed) for cut in cuts)
    if number > MAX_FORGOTTEN:
        raise Invalid(f"{number} lines hold these words; say more exactly which, at most {MAX_FORGOTTEN} go at once")
    return await _cut_blocks(context, cuts)


async def _cut_blocks(context: CommandContext, cuts: Sequence[BlockCut]) -> CommandReply:
    """Cut one block after the other; if one cannot be written, the answer still lists the cuts before it."""
    parts: list[str] = []
    edits: list[MemoryEdit] = []
    for cut in cuts:
        try:
            edits.append(await _write_block(context, cut.block, cut.remaining))
        except FrontdeskError as error:
            parts.append(escape_line(error.public_message))
            break
        parts.append(
            "\n".join([f"Forgotten from {inline_code(cut.block.label)}:", "", code_block("\n".join(cut.removed))])
        )
    return CommandReply("\n\n".join(parts), edits)


async def _memory_blocks(context: CommandContext) -> Mapping[str, MemoryBlock]:
    kept, runs = context.session, rights.runs_installation(context.caller)
    found = await context.app.host.blocks(kept.agent_id, kept.user_id, runs=runs)
    return {block.label: block for block in found}


async def _write_block(context: CommandContext, block: MemoryBlock, value: str) -> MemoryEdit:
    kept, runs = context.session, rights.runs_installation(context.caller)
    written = await context.app.host.write_block(kept.agent_id, block.label, value, user_id=kept.user_id, runs=runs)
    return MemoryEdit(block.label, block.value, written.value)


def _find_block(blocks: Mapping[str, MemoryBlock], label: str) -> MemoryBlock:
    if label not in blocks:
        raise NotFound(f"There is no memory block '{label[:100]}'; there are: {', '.join(blocks) or 'none'}")
    return blocks[label]


def _split_label(blocks: Mapping[str, MemoryBlock], argument: str) -> tuple[str | None, str]:
    """The block whose label comes first in the text, if any, and the rest of the text."""
    found = LABELLED_TEXT.fullmatch(argument.strip())
    if found is not None and found[1].strip() in blocks:
        return found[1].strip(), found[2].strip()
    return None, argument.strip()


def _cut_block(block: MemoryBlock, text: str) -> BlockCut:
    """Remove the lines that contain each of the words as a whole word."""
    wanted = [re.compile(rf"(?<!\w){re.escape(word)}(?!\w)") for word in text.casefold().split()]
    lines = block.value.split("\n")
    gone = [line for line in lines if all(word.search(line.casefold()) for word in wanted)]
    return BlockCut(block, gone, "\n".join(line for line in lines if line not in gone))


def _describe_block(context: CommandContext, block: MemoryBlock) -> str:
    only = ", read-only" if block.read_only else ""
    size = f"{len(block.value):,} of {block.limit:,} characters{only}"
    path = context.app.workspace.mirror.path_of(context.session.agent_id, block.label, context.session.user_id)
    file = inline_code(str(path), len(str(path)))
    return f"**{escape_line(block.label)}** ({size}), in {file}\n\n{code_block(block.value)}"


NOTHING_SCHEDULED = "Nothing is scheduled. Have the agent prompted later: `/schedule in two hours: look at the build`"
SCHEDULE_USAGE = "Say when, a colon and the prompt: /schedule in two hours: look at the build"
MAX_SCHEDULES = 50
PROMPT_CHARACTERS = 100
# The rule is in quotes, or it ends at the first colon that is not part of a time.
OPENING_QUOTES, CLOSING_QUOTES = "\"'\u201c\u2018", "\"'\u201d\u2019"
QUOTED_RULE = re.compile(
    rf"[{OPENING_QUOTES}](?P<when>[^{CLOSING_QUOTES}]+)[{CLOSING_QUOTES}]\s*:?\s*(?P<prompt>.+)", re.DOTALL
)
RULE_BEFORE_COLON = re.compile(r"(?P<when>.+?):\s+(?P<prompt>.+)", re.DOTALL)
CANCEL_PATTERN = re.compile(r"cancel(?:\s+#?(?P<number>\S*))?", re.IGNORECASE)


async def run_schedule(context: CommandContext, argument: str) -> CommandReply:
    text = argument.strip()
    if text.lower() in ("", "list"):
        return await _list_schedules(context)
    cancelled = CANCEL_PATTERN.fullmatch(text)
    return (
        await _add_schedule(context, text)
        if cancelled is None
        else await _cancel_schedule(context, cancelled["number"] or "")
    )


async def _list_schedules(context: CommandContext) -> CommandReply:
    wanted = ListSchedules(context.session.agent_id, limit=MAX_SCHEDULES)
    found = await context.app.schedules.queries.list(context.caller, wanted)
    rows = [_schedule_row(one) for one in found.schedules]
    more = f"\n\nThese are the first {MAX_SCHEDULES}; there are more." if found.next is not None else ""
    return CommandReply(render_table(("number", "when", "prompt"), rows) + more if rows else NOTHING_SCHEDULED)


async def _cancel_schedule(context: CommandContext, number: str) -> CommandReply:
    found = await context.app.schedules.queries.get(context.caller, number)
    if found.what.agent_id != context.session.agent_id:
        raise NotFound(f"Schedule {found.id} is not one of this agent's; /schedule lists those")
    gone = await context.app.schedules.cancel(context.caller, found.id)
    return CommandReply(f"Schedule {gone.id} cancelled: {escape_line(gone.what.prompt, PROMPT_CHARACTERS)}")


async def _add_schedule(context: CommandContext, text: str) -> CommandReply:
    found = QUOTED_RULE.fullmatch(text) or RULE_BEFORE_COLON.fullmatch(text)
    if found is None:
        raise Invalid(SCHEDULE_USAGE)
    asked = NewSchedule(found["prompt"].strip(), context.session.agent_id, when=found["when"].strip())
    added = await _add_in_conversation(context, asked)
    return CommandReply(f"Scheduled with number {added.schedule.id}: {escape_line(added.rule.sentence)}")


async def _add_in_conversation(context: CommandContext, request: NewSchedule) -> SavedSchedule:
    """Schedule it in this conversation where the scheduler allows that, else in a conversation of its own."""
    here = replace(request, conversation_id=context.session.conversation_id)
    try:
        return await context.app.schedules.add(context.caller, here)
    except NotFound:
        return await context.app.schedules.add(context.caller, request)


def _schedule_row(one: Schedule) -> tuple[str, ...]:
    rule = RuleDescription.of(one.what.trigger, one.intended_us)
    state = "" if one.state is ScheduleState.ACTIVE else f" ({one.state})"
    return str(one.id), inline_code(rule.sentence) + state, escape_line(one.what.prompt, PROMPT_CHARACTERS)


# Tasks are listed in this order.
OPEN_STATUSES = (TaskStatus.IN_PROGRESS, TaskStatus.PENDING, TaskStatus.ON_HOLD)
MAX_TASKS = 50
TITLE_CHARACTERS = 100
NO_TASKS = "No open tasks. Make one: `/tasks add Book the train`"


async def run_tasks(context: CommandContext, argument: str) -> CommandReply:
    scope = _person_scope(context)
    verb, *rest = argument.split(maxsplit=1) or [""]
    match verb.lower():
        case "add":
            return await _add_task(context, scope, "".join(rest).strip())
        case "done":
            return await _complete_task(context, scope, "".join(rest))
        case _:
            return await _list_tasks(context, scope, argument.strip())


def _person_scope(context: CommandContext) -> PersonScope:
    """The person whose tasks are meant; calls from this machine without a user get the local user's, like the CLI."""
    caller = context.caller
    return PersonScope.for_caller(replace(caller, user_id=LOCAL_USER) if rights.is_operator(caller) else caller)


async def _list_tasks(context: CommandContext, scope: PersonScope, search: str) -> CommandReply:
    found: list[Task] = []
    more = False
    for status in OPEN_STATUSES:
        wanted = TaskFilter(status=status, search=search or None, limit=MAX_TASKS)
        page = await context.app.memory.tasks.list(scope, wanted)
        found.extend(page.items)
        more |= page.has_more
    if not found:
        return CommandReply(f"No open task holds the words {inline_code(search)}." if search else NO_TASKS)
    note = "\n\nThere are more; `/tasks WORDS` finds those that hold the words." if more else ""
    return CommandReply(_task_table(found, await person_zone(context.app.memory, scope)) + note)


async def _add_task(context: CommandContext, scope: PersonScope, title: str) -> CommandReply:
    try:
        asked = CreateTask.model_validate({"title": title})
    except ValidationError as error:
        raise Invalid(f"That does not fit: {describe_validation_errors(error)}") from error
    task = await context.app.memory.tasks.create(scope, asked.provided())
    return CommandReply(f"Added: {await _describe_task(context, scope, task)}")


async def _complete_task(context: CommandContext, scope: PersonScope, text: str) -> CommandReply:
    task_id = await context.app.memory.id_lookup.task(scope, text)
    task = await context.app.memory.tasks.set_status(scope, task_id, TaskStatus.COMPLETED)
    return CommandReply(f"Done: {await _describe_task(context, scope, task)}")


async def _describe_task(context: CommandContext, scope: PersonScope, task: Task) -> str:
    told = format_task_line(task, await person_zone(context.app.memory, scope)).removeprefix("- ")
    return escape_line(f"{told}. {task.wake_note}" if task.wake_note else told)


def _task_table(found: Sequence[Task], zone: ZoneInfo) -> str:
    head = ("id", "task", "status", "priority", "due")
    return render_table(head, [_task_row(task, zone) for task in found])


def _task_row(task: Task, zone: ZoneInfo) -> tuple[str, ...]:
    due = format_time(task.due_date, zone) if task.due_date else ""
    return (
        inline_code(task.id),
        escape_line(task.title, TITLE_CHARACTERS),
        task.status.replace("_", " "),
        task.priority,
        due,
    )


NO_TOOLS = (
    "It holds none besides its own. `/tools WORDS` finds some; the agent attaches what it needs when it is asked to."
)
MAX_TOOLS = 10
DESCRIPTION_CHARACTERS = 100


async def run_tools(context: CommandContext, argument: str) -> CommandReply:
    return await _search_tools(context, argument) if argument.strip() else await _list_tools(context)


async def _list_tools(context: CommandContext) -> CommandReply:
    rights.require_scope(context.caller, rights.TOOLS_READ)
    held = await context.app.host.tools(context.session.agent_id)
    if not held:
        return CommandReply(NO_TOOLS)
    rows = [
        (inline_code(tool.name), escape_line(tool.description, DESCRIPTION_CHARACTERS), _tool_notes(tool))
        for tool in held
    ]
    return CommandReply(render_table(("tool", "what it does", ""), rows))


async def _search_tools(context: CommandContext, argument: str) -> CommandReply:
    """Search among the tools that this agent may use."""
    caller = replace(context.caller, agent_id=context.session.agent_id)
    found = await context.app.tools.search(caller, SearchTools(argument, MAX_TOOLS))
    if not found.findings:
        return CommandReply(f"Nothing fits among {found.searched:,} tools.")
    held = {tool.name for tool in await context.app.host.tools(context.session.agent_id)}
    rows = [_tool_row(finding, held=finding.tool.api_name in held) for finding in found.findings]
    return CommandReply(render_table(("score", "tool", "what it does", "why", ""), rows))


def _tool_row(finding: ToolMatch, *, held: bool) -> tuple[str, ...]:
    tool = finding.tool
    what, why = (
        escape_line(tool.description, DESCRIPTION_CHARACTERS),
        escape_line(finding.reason, DESCRIPTION_CHARACTERS),
    )
    return f"{finding.score:.0f}", inline_code(tool.id), what, why, "attached" if held else ""


def _tool_notes(tool: HeldTool) -> str:
    return ", ".join(
        note for note in (escape_line(tool.server or ""), "asks first" if tool.needs_approval else "") if note
    )


def _reply_errors(run: RunCommand) -> RunCommand:
    """An error becomes the command's answer, and does not fail the prompt."""

    @wraps(run)
    async def reply(context: CommandContext, argument: str) -> CommandReply:
        try:
            return await run(context, argument)
        except FrontdeskError as error:
            return CommandReply(escape_line(error.public_message))

    return reply


async def _run_help(_desk: CommandContext, _argument: str) -> CommandReply:
    rows = [
        (inline_code(f"/{one.name} {one.hint}".rstrip()), escape_line(one.description)) for one in COMMANDS.values()
    ]
    return CommandReply(render_table(("command", "what it does"), rows))


_ALL_COMMANDS = (
    SlashCommand("help", "List these commands", _run_help),
    SlashCommand("memory", "Show what the agent remembers", run_memory, "[label]"),
    SlashCommand("remember", "Add a line to the agent's memory", run_remember, "[label:] text"),
    SlashCommand("forget", "Remove the lines that hold these words from its memory", run_forget, "[label:] words"),
    SlashCommand("tools", "Show the tools that the agent holds, or find others", run_tools, "[words]"),
    SlashCommand(
        *("schedule", "Show, make or cancel prompts that come later", run_schedule),
        "[list, cancel NUMBER, or when: prompt]",
    ),
    SlashCommand("tasks", "Show, add or complete your tasks", run_tasks, "[words, add TITLE, or done ID]"),
    SlashCommand("compact", "Sum up what was said, to make room", run_compact),
    SlashCommand("model", "Show the models, or choose one for this session", run_model, "[name]"),
    SlashCommand("rewind", "Forget the newest turns of this session", run_rewind, "[number]"),
)
COMMANDS: Mapping[str, SlashCommand] = {
    one.name: SlashCommand(one.name, one.description, _reply_errors(one.run), one.hint) for one in _ALL_COMMANDS
}
