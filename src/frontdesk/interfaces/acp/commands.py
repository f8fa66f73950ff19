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
from frontdesk.memory.operations.tasks import CreateTask, format_task_line
from frontdesk.memory.tasks_rules import TaskFilter
from frontdesk.schedules.model import Schedule, ScheduleState
from frontdesk.schedules.requests import ListSchedules, NewSchedule, RuleDescription, SavedSchedule, parse_whole_number
from frontdesk.tools.finder import SearchTools, ToolMatch


@dataclass(frozen=True, slots=True)
class CommandContext:
    """Where a command is given: in which installation, session and by whom; `caller` is of this one request."""

    app: App
    session: CodingSession
    caller: Caller


@dataclass(frozen=True, slots=True)
class CommandReply:
    """What a command says, as Markdown, and what it shows besides, such as a `MemoryEdit`.

    `change` is the session as it is to be kept from now on, where the command changes it.
    """

    text: str
    events: Sequence[Event] = ()
    change: CodingSession | None = None


# Does a command, given what was said after its name.
RunCommand = Callable[[CommandContext, str], Awaitable[CommandReply]]


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """`hint` says what may follow the name; empty where nothing does."""

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


async def run_compact(desk: CommandContext, _said: str) -> CommandReply:
    rights.require_scope(desk.caller, rights.AGENTS_CHAT)
    kept = desk.session
    done = await desk.app.host.compact(kept.agent_id, kept.conversation_id, kept.user_id)
    if done is None:
        return CommandReply(NOTHING_TO_COMPACT)
    return CommandReply(COMPACTED if done.by_model else SHORTENED, (done,))


async def run_rewind(desk: CommandContext, said: str) -> CommandReply:
    rights.require_scope(desk.caller, rights.AGENTS_CHAT)
    wanted = parse_whole_number(said.strip() or "1")
    if wanted is None or not 1 <= wanted <= MAX_TURNS:
        raise Invalid(f"Say how many turns to take back, from 1 to {MAX_TURNS}: /rewind 2")
    if not desk.app.host.features.can_rewind:
        return CommandReply(CANNOT_REWIND)
    kept = desk.session
    gone = await desk.app.host.rewind(kept.agent_id, kept.conversation_id, wanted, kept.user_id)
    if not gone:
        return CommandReply("There is no turn to take back.")
    turns = "The newest turn is" if gone == 1 else f"The newest {gone} turns are"
    return CommandReply(f"{turns} forgotten, though still shown above. Files and memory stay as they are.")


async def run_model(desk: CommandContext, said: str) -> CommandReply:
    offered = await desk.app.host.models()
    name = said.strip()
    return _change_model(desk, _find_model(offered, name)) if name else CommandReply(await _model_table(desk, offered))


async def _model_table(desk: CommandContext, offered: Sequence[ModelChoice]) -> str:
    agent = await desk.app.host.find(desk.session.agent_id)
    own = agent.model if agent is not None else None
    used = desk.session.model or own or (offered[0].name if offered else "")
    others = () if not used or any(one.name == used for one in offered) else (ModelChoice(used),)
    rows = [_model_row(one, used=one.name == used) for one in (*offered, *others)]
    return render_table(("model", "", "efforts", ""), rows) if rows else "The agents' host names no models."


def _change_model(desk: CommandContext, chosen: ModelChoice) -> CommandReply:
    """An effort that the new model has too is kept."""
    effort = desk.session.effort if desk.session.effort in chosen.efforts else None
    kept = replace(desk.session, model=chosen.name, effort=effort)
    return CommandReply(f"This session now thinks with {inline_code(chosen.name)}.", change=kept)


def _find_model(offered: Sequence[ModelChoice], name: str) -> ModelChoice:
    """The model of this name or title, or the only one in whose name it stands."""
    wanted = name.casefold()
    exact = [one for one in offered if wanted in (one.name.casefold(), one.title.casefold())]
    found = exact[:1] or [one for one in offered if wanted in one.name.casefold()]
    if len(found) == 1:
        return found[0]
    if found:
        raise Invalid(f"Several models go by that: {', '.join(one.name for one in found)}; say more of the name")
    raise NotFound(f"There is no model '{name[:100]}'; /model lists those there are")


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
    """A block, and the lines that are to go from it."""

    block: MemoryBlock
    removed: Sequence[str]
    remaining: str


async def run_memory(desk: CommandContext, said: str) -> CommandReply:
    blocks = await _memory_blocks(desk)
    label = said.strip()
    wanted = [_find_block(blocks, label)] if label else list(blocks.values())
    return CommandReply("\n\n".join(_describe_block(desk, block) for block in wanted) or "It has no memory blocks.")


async def run_remember(desk: CommandContext, said: str) -> CommandReply:
    rights.require_scope(desk.caller, rights.AGENTS_CHAT)
    blocks = await _memory_blocks(desk)
    label, text = _split_label(blocks, said)
    if not text:
        raise Invalid("Say what to remember: /remember I work in Berlin")
    block = _find_block(blocks, label or DEFAULT_BLOCK)
    value = f"{block.value.rstrip()}\n{text}" if block.value.strip() else text
    edit = await _write_block(desk, block, value)
    return CommandReply(f"Remembered in {inline_code(block.label)}: {escape_line(text)}", (edit,))


async def run_forget(desk: CommandContext, said: str) -> CommandReply:
    rights.require_scope(desk.caller, rights.AGENTS_CHAT)
    blocks = await _memory_blocks(desk)
    label, text = _split_label(blocks, said)
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
    return await _cut_blocks(desk, cuts)


async def _cut_blocks(desk: CommandContext, cuts: Sequence[BlockCut]) -> CommandReply:
    """Cut one block after the other; what has gone is told also where the next cannot be written."""
    told: list[str] = []
    edits: list[MemoryEdit] = []
    for cut in cuts:
        try:
            edits.append(await _write_block(desk, cut.block, cut.remaining))
        except FrontdeskError as error:
            told.append(escape_line(error.public_message))
            break
        told.append(
            "\n".join([f"Forgotten from {inline_code(cut.block.label)}:", "", code_block("\n".join(cut.removed))])
        )
    return CommandReply("\n\n".join(told), edits)


async def _memory_blocks(desk: CommandContext) -> Mapping[str, MemoryBlock]:
    kept, runs = desk.session, rights.runs_installation(desk.caller)
    found = await desk.app.host.blocks(kept.agent_id, kept.user_id, runs=runs)
    return {block.label: block for block in found}


async def _write_block(desk: CommandContext, block: MemoryBlock, value: str) -> MemoryEdit:
    kept, runs = desk.session, rights.runs_installation(desk.caller)
    written = await desk.app.host.write_block(kept.agent_id, block.label, value, user_id=kept.user_id, runs=runs)
    return MemoryEdit(block.label, block.value, written.value)


def _find_block(blocks: Mapping[str, MemoryBlock], label: str) -> MemoryBlock:
    if label not in blocks:
        raise NotFound(f"There is no memory block '{label[:100]}'; there are: {', '.join(blocks) or 'none'}")
    return blocks[label]


def _split_label(blocks: Mapping[str, MemoryBlock], said: str) -> tuple[str | None, str]:
    """The block that is named first, if one is, and the rest."""
    found = LABELLED_TEXT.fullmatch(said.strip())
    if found is not None and found[1].strip() in blocks:
        return found[1].strip(), found[2].strip()
    return None, said.strip()


def _cut_block(block: MemoryBlock, text: str) -> BlockCut:
    """Lines go that hold each of the words, as a word of its own."""
    wanted = [re.compile(rf"(?<!\w){re.escape(word)}(?!\w)") for word in text.casefold().split()]
    lines = block.value.split("\n")
    gone = [line for line in lines if all(word.search(line.casefold()) for word in wanted)]
    return BlockCut(block, gone, "\n".join(line for line in lines if line not in gone))


def _describe_block(desk: CommandContext, block: MemoryBlock) -> str:
    only = ", read-only" if block.read_only else ""
    size = f"{len(block.value):,} of {block.limit:,} characters{only}"
    path = desk.app.workspace.mirror.path_of(desk.session.agent_id, block.label, desk.session.user_id)
    file = inline_code(str(path), len(str(path)))
    return f"**{escape_line(block.label)}** ({size}), in {file}\n\n{code_block(block.value)}"


NOTHING_SCHEDULED = "Nothing is scheduled. Have the agent prompted later: `/schedule in two hours: look at the build`"
SCHEDULE_USAGE = "Say when, a colon and the prompt: /schedule in two hours: look at the build"
MAX_SCHEDULES = 50
PROMPT_CHARACTERS = 100
# The rule in quotes, whatever is in it, or up to the first colon that is none of a time's.
OPENING_QUOTES, CLOSING_QUOTES = "\"'\u201c\u2018", "\"'\u201d\u2019"
QUOTED_RULE = re.compile(
    rf"[{OPENING_QUOTES}](?P<when>[^{CLOSING_QUOTES}]+)[{CLOSING_QUOTES}]\s*:?\s*(?P<prompt>.+)", re.DOTALL
)
RULE_BEFORE_COLON = re.compile(r"(?P<when>.+?):\s+(?P<prompt>.+)", re.DOTALL)
CANCEL_PATTERN = re.compile(r"cancel(?:\s+#?(?P<number>\S*))?", re.IGNORECASE)


async def run_schedule(desk: CommandContext, said: str) -> CommandReply:
    text = said.strip()
    if text.lower() in ("", "list"):
        return await _list_schedules(desk)
    cancelled = CANCEL_PATTERN.fullmatch(text)
    return (
        await _add_schedule(desk, text)
        if cancelled is None
        else await _cancel_schedule(desk, cancelled["number"] or "")
    )


async def _list_schedules(desk: CommandContext) -> CommandReply:
    wanted = ListSchedules(desk.session.agent_id, limit=MAX_SCHEDULES)
    found = await desk.app.schedules.queries.list(desk.caller, wanted)
    rows = [_schedule_row(one) for one in found.schedules]
    more = f"\n\nThese are the first {MAX_SCHEDULES}; there are more." if found.next is not None else ""
    return CommandReply(render_table(("number", "when", "prompt"), rows) + more if rows else NOTHING_SCHEDULED)


async def _cancel_schedule(desk: CommandContext, number: str) -> CommandReply:
    found = await desk.app.schedules.queries.get(desk.caller, number)
    if found.what.agent_id != desk.session.agent_id:
        raise NotFound(f"Schedule {found.id} is not one of this agent's; /schedule lists those")
    gone = await desk.app.schedules.cancel(desk.caller, found.id)
    return CommandReply(f"Schedule {gone.id} cancelled: {escape_line(gone.what.prompt, PROMPT_CHARACTERS)}")


async def _add_schedule(desk: CommandContext, text: str) -> CommandReply:
    found = QUOTED_RULE.fullmatch(text) or RULE_BEFORE_COLON.fullmatch(text)
    if found is None:
        raise Invalid(SCHEDULE_USAGE)
    asked = NewSchedule(found["prompt"].strip(), desk.session.agent_id, when=found["when"].strip())
    added = await _add_in_conversation(desk, asked)
    return CommandReply(f"Scheduled with number {added.schedule.id}: {escape_line(added.rule.sentence)}")


async def _add_in_conversation(desk: CommandContext, asked: NewSchedule) -> SavedSchedule:
    """In this very conversation where the scheduler lets its owner have it, otherwise in one of its own."""
    here = replace(asked, conversation_id=desk.session.conversation_id)
    try:
        return await desk.app.schedules.add(desk.caller, here)
    except NotFound:
        return await desk.app.schedules.add(desk.caller, asked)


def _schedule_row(one: Schedule) -> tuple[str, ...]:
    rule = RuleDescription.of(one.what.trigger, one.intended_us)
    state = "" if one.state is ScheduleState.ACTIVE else f" ({one.state})"
    return str(one.id), inline_code(rule.sentence) + state, escape_line(one.what.prompt, PROMPT_CHARACTERS)


# In this order.
OPEN_STATUSES = (TaskStatus.IN_PROGRESS, TaskStatus.PENDING, TaskStatus.ON_HOLD)
MAX_TASKS = 50
TITLE_CHARACTERS = 100
NO_TASKS = "No open tasks. Make one: `/tasks add Book the train`"


async def run_tasks(desk: CommandContext, said: str) -> CommandReply:
    scope = _person_scope(desk)
    verb, *rest = said.split(maxsplit=1) or [""]
    match verb.lower():
        case "add":
            return await _add_task(desk, scope, "".join(rest).strip())
        case "done":
            return await _complete_task(desk, scope, "".join(rest))
        case _:
            return await _list_tasks(desk, scope, said.strip())


def _person_scope(desk: CommandContext) -> PersonScope:
    """A caller on this machine without a name has the tasks that the command line shows."""
    caller = desk.caller
    return PersonScope.for_caller(replace(caller, user_id=LOCAL_USER) if rights.is_operator(caller) else caller)


async def _list_tasks(desk: CommandContext, scope: PersonScope, search: str) -> CommandReply:
    found: list[Task] = []
    more = False
    for status in OPEN_STATUSES:
        wanted = TaskFilter(status=status, search=search or None, limit=MAX_TASKS)
        page = await desk.app.memory.tasks.list(scope, wanted)
        found.extend(page.items)
        more |= page.has_more
    if not found:
        return CommandReply(f"No open task holds the words {inline_code(search)}." if search else NO_TASKS)
    note = "\n\nThere are more; `/tasks WORDS` finds those that hold the words." if more else ""
    return CommandReply(_task_table(found, await person_zone(desk.app.memory, scope)) + note)


async def _add_task(desk: CommandContext, scope: PersonScope, title: str) -> CommandReply:
    try:
        asked = CreateTask.model_validate({"title": title})
    except ValidationError as error:
        raise Invalid(f"That does not fit: {describe_validation_errors(error)}") from error
    task = await desk.app.memory.tasks.create(scope, asked.provided())
    return CommandReply(f"Added: {await _describe_task(desk, scope, task)}")


async def _complete_task(desk: CommandContext, scope: PersonScope, text: str) -> CommandReply:
    task_id = await desk.app.memory.id_lookup.task(scope, text)
    task = await desk.app.memory.tasks.set_status(scope, task_id, TaskStatus.COMPLETED)
    return CommandReply(f"Done: {await _describe_task(desk, scope, task)}")


async def _describe_task(desk: CommandContext, scope: PersonScope, task: Task) -> str:
    told = format_task_line(task, await person_zone(desk.app.memory, scope)).removeprefix("- ")
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


async def run_tools(desk: CommandContext, said: str) -> CommandReply:
    return await _search_tools(desk, said) if said.strip() else await _list_tools(desk)


async def _list_tools(desk: CommandContext) -> CommandReply:
    rights.require_scope(desk.caller, rights.TOOLS_READ)
    held = await desk.app.host.tools(desk.session.agent_id)
    if not held:
        return CommandReply(NO_TOOLS)
    rows = [
        (inline_code(tool.name), escape_line(tool.description, DESCRIPTION_CHARACTERS), _tool_notes(tool))
        for tool in held
    ]
    return CommandReply(render_table(("tool", "what it does", ""), rows))


async def _search_tools(desk: CommandContext, said: str) -> CommandReply:
    """Among what this agent may use, and with what it used before."""
    caller = replace(desk.caller, agent_id=desk.session.agent_id)
    found = await desk.app.tools.search(caller, SearchTools(said, MAX_TOOLS))
    if not found.findings:
        return CommandReply(f"Nothing fits among {found.searched:,} tools.")
    held = {tool.name for tool in await desk.app.host.tools(desk.session.agent_id)}
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
    """What cannot be done is what the command says, and no failure of the turn."""

    @wraps(run)
    async def told(desk: CommandContext, said: str) -> CommandReply:
        try:
            return await run(desk, said)
        except FrontdeskError as error:
            return CommandReply(escape_line(error.public_message))

    return told


async def _run_help(_desk: CommandContext, _said: str) -> CommandReply:
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
