"""Implements `frontdesk chat`: a conversation in the terminal, or one message for a script.

Lines are read in the main thread, because only there Ctrl-C interrupts reading a line.
"""

import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass
from io import TextIOWrapper

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from frontdesk.agents.host import EVERYONE, Agent, AgentHost, Approval, PersonFilter, Prompt
from frontdesk.agents.turns.operations import run_journaled_turn
from frontdesk.app import App, open_app
from frontdesk.errors import Conflict, FrontdeskError, Invalid, PendingApproval, Unavailable
from frontdesk.identity.model import Caller
from frontdesk.interfaces.app_runner import SURFACE, configure_quiet_logs, run_with_app
from frontdesk.interfaces.cli.agents import find_agent
from frontdesk.interfaces.cli.chat_display import (
    INPUT_PROMPT,
    STOP_MESSAGES,
    Colour,
    TerminalState,
    describe_approval,
    draw_event,
    line_end,
    paint,
)
from frontdesk.interfaces.cli.output import Flag, JsonFlag, Text, printable_line, printable_text
from frontdesk.interfaces.http.context import ensure_request_id
from frontdesk.llm.events import (
    ApprovalRequest,
    Done,
    Event,
    Failed,
    StopReason,
    TextChunk,
    ThoughtChunk,
    ToolArguments,
    Usage,
)
from frontdesk.settings import Settings

try:
    import readline
except ImportError:
    readline = None

APPROVAL_QUESTION = "approve? [y]es / [n]o (reason) / [a]lways for this tool in this chat: "
YES_ANSWERS = ("y", "yes")
NO_ANSWERS = ("n", "no")
ALWAYS_ANSWERS = ("a", "always")


class ChatLeft(Exception):
    """The person leaves the chat."""


@dataclass(frozen=True, slots=True)
class ApprovalReply:
    """The person's decision on a request. `always` applies to the tool until the chat ends."""

    approve: bool
    always: bool = False
    reason: str = ""


def parse_approval(text: str) -> ApprovalReply | None:
    """`y`, `n too risky`, `always`; None for anything else."""
    said, _, rest = text.strip().partition(" ")
    said, reason = said.lower().rstrip(",:"), rest.strip()
    if said in NO_ANSWERS:
        return ApprovalReply(approve=False, reason=reason)
    if reason:
        return None
    return ApprovalReply(approve=True, always=said in ALWAYS_ANSWERS) if said in YES_ANSWERS + ALWAYS_ANSWERS else None


def prepare_terminal() -> None:
    """Replace characters that the terminal cannot encode or decode."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    if readline is not None:
        # The history keeps only messages to the agent, not the answers to approvals.
        readline.set_auto_history(False)


def read_line(prompt: str) -> str:
    """A line. Ctrl-D raises `ChatLeft`."""
    try:
        return input(prompt)
    except EOFError as error:
        print()
        raise ChatLeft from error


def add_to_history(text: str) -> None:
    """Add a line to the history of the arrow keys."""
    if readline is not None:
        readline.add_history(text)


def has_colour() -> bool:
    """Whether to print in colour (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@dataclass(frozen=True, slots=True)
class ChatThread:
    """A conversation of an agent with a person. Without a `conversation_id` it is their first."""

    agent: Agent
    conversation_id: str | None = None
    user_id: str | None = None

    @property
    def whose(self) -> PersonFilter:
        """The person of the conversation. Without a name it is the operator."""
        return EVERYONE if self.user_id is None else self.user_id

    def message_prompt(self, text: str) -> Prompt:
        return self._prompt(text=text)

    def approval_prompt(self, approvals: Sequence[Approval]) -> Prompt:
        return self._prompt(approvals=approvals)

    def _prompt(self, text: str | None = None, approvals: Sequence[Approval] = ()) -> Prompt:
        runs = self.user_id is None
        return Prompt(self.agent.id, self._caller(), text, approvals, self.conversation_id, runs=runs)

    def _caller(self) -> Caller:
        # A user who can run this command can read the database, so no proof of the person is needed.
        return Caller(ensure_request_id(None), user_id=self.user_id)


async def begin_conversation(host: AgentHost, thread: ChatThread) -> ChatThread:
    """A new conversation of the same agent and person."""
    made = await host.start_conversation(thread.agent.id, thread.user_id)
    return ChatThread(thread.agent, made.id, thread.user_id)


async def last_stop(host: AgentHost, thread: ChatThread) -> Done | None:
    """How the newest turn of a conversation ended. None before the first, and while one is running."""
    said = await host.history(thread.agent.id, thread.conversation_id, limit=1, user_id=thread.whose)
    last = said[-1].event if said else None
    return last if isinstance(last, Done) else None


async def open_approvals(host: AgentHost, thread: ChatThread) -> tuple[bool, Sequence[ApprovalRequest]]:
    """(whether the last turn was interrupted, the calls that wait for approval)."""
    ended = await last_stop(host, thread)
    interrupted = ended is not None and ended.stop is StopReason.INTERRUPTED
    return interrupted, await host.pending(thread.agent.id, thread.conversation_id, thread.whose)


CHAT_COMMANDS_HELP = """\
/help     this list
/new      start a new conversation; the agent keeps its memory
/memory   the agent's memory blocks
/tools    the agent's tools
/history  the messages of this conversation
/quit     leave, as does Ctrl-D
Anything else goes to the agent; write // for a message that starts with a slash.
"""
DESCRIPTION_LENGTH = 100


async def show_memory(host: AgentHost, thread: ChatThread, pen: TerminalState) -> str:
    shown = ""
    for block in await host.blocks(thread.agent.id, thread.user_id, runs=thread.user_id is None):
        only = ", read-only" if block.read_only else ""
        head = f"{printable_line(block.label)} ({len(block.value)} of {block.limit} characters{only})"
        shown += f"{paint(head, Colour.CYAN, pen)}\n" + (f"{printable_text(block.value)}\n" if block.value else "")
    return shown or "It has no memory blocks.\n"


async def show_tools(host: AgentHost, thread: ChatThread, pen: TerminalState) -> str:
    shown = ""
    for tool in await host.tools(thread.agent.id):
        asks = " (asks first)" if tool.needs_approval else ""
        name = paint(printable_line(tool.name), Colour.CYAN, pen)
        shown += f"{name}{asks}  {printable_line(tool.description, DESCRIPTION_LENGTH)}\n"
    return shown or f"None besides its own. Give it one: frontdesk agents attach {thread.agent.id} SERVER TOOL\n"


async def show_history(host: AgentHost, thread: ChatThread, pen: TerminalState) -> str:
    shown = ""
    for said in await host.history(thread.agent.id, thread.conversation_id, user_id=thread.whose):
        text, pen = draw_event(said.event, pen)
        shown += text
    return shown + line_end(pen) or "Nothing was said yet.\n"


SLASH_COMMANDS: Mapping[str, Callable[[AgentHost, ChatThread, TerminalState], Awaitable[str]]] = {
    "/memory": show_memory,
    "/tools": show_tools,
    "/history": show_history,
}

# After these there is no complete answer.
FAILED_STOPS = (StopReason.ERROR, StopReason.REQUIRES_APPROVAL, StopReason.CANCELLED, StopReason.INTERRUPTED)


async def take_one_turn(app: App, thread: ChatThread, text: str, *, as_json: bool) -> bool:
    """Take a turn and print it. Returns whether there was an answer."""
    answer = AnswerPrinter()
    show: Callable[[Event], None] = _print_json if as_json else answer.show
    stop, spoke = StopReason.ERROR, False
    try:
        async with aclosing(run_journaled_turn(app.host, app.journal, SURFACE, thread.message_prompt(text))) as events:
            async for event in events:
                show(event)
                if isinstance(event, Done):
                    stop = event.stop
                spoke = spoke or (isinstance(event, TextChunk) and bool(event.text.strip()))
    except PendingApproval as error:
        raise Conflict(f"{_approval_hint(thread)} before you can say something else") from error
    if not as_json:
        answer.end()
    if stop is StopReason.REQUIRES_APPROVAL:
        print(f"frontdesk: {_approval_hint(thread)}", file=sys.stderr)
    elif stop in STOP_MESSAGES:
        print(f"frontdesk: {STOP_MESSAGES[stop]}", file=sys.stderr)
    elif stop is StopReason.END_TURN and not spoke:
        print("frontdesk: The agent said nothing.", file=sys.stderr)
    return spoke and stop not in FAILED_STOPS


class AnswerPrinter:
    """Prints the agent's text as it arrives, with paragraphs around tool calls."""

    def __init__(self) -> None:
        self._fresh = True
        self._paused = False

    def show(self, event: Event) -> None:
        match event:
            case TextChunk(text):
                self._say(printable_text(text))
            case Failed(trouble, message):
                self.end()
                print(f"frontdesk: the turn failed ({trouble}): {printable_text(message)}", file=sys.stderr)
            case ThoughtChunk() | ToolArguments() | Usage():
                pass
            case _:
                self._paused = True

    def end(self) -> None:
        if not self._fresh:
            print(flush=True)
            self._fresh = True

    def _say(self, text: str) -> None:
        if self._paused:
            self.end()
            self._paused = False
        print(text, end="", flush=True)
        self._fresh = text.endswith("\n") if text else self._fresh


def _print_json(event: Event) -> None:
    # Escaped to ASCII, so that it contains no terminal control sequences.
    print(json.dumps({"event": event_name(event), **asdict(event)}, default=str), flush=True)


def event_name(event: Event) -> str:
    """`TextChunk` → `text_chunk`."""
    name = type(event).__name__
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name).lstrip("_")


def _approval_hint(thread: ChatThread) -> str:
    which = f" --conversation {thread.conversation_id}" if thread.conversation_id else ""
    return f"a tool call waits for your approval: run `frontdesk chat {thread.agent.id}{which}` in a terminal"


REJECTION_REASON = "Rejected in the terminal."


class TerminalChat:
    """One person's chat with one agent."""

    def __init__(self, portal: BlockingPortal, app: App, thread: ChatThread, *, colour: bool) -> None:
        self._portal = portal
        self._host = app.host
        self._journal = app.journal
        self._thread = thread
        self._pen = TerminalState(colour)
        self._always: set[str] = set()
        self._interrupted = False

    def run(self) -> None:
        """Talk until the person leaves. Calls that wait for approval keep waiting."""
        self._greet()
        step = self._show_open_approvals
        try:
            while True:
                try:
                    step()
                except KeyboardInterrupt:
                    self._interrupt()
                step = self._read_lines
        except ChatLeft:
            # Closing takes a bounded time, and another Ctrl-C must not interrupt it.
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _greet(self) -> None:
        agent, conversation = self._thread.agent, self._thread.conversation_id
        which = f", conversation {printable_line(conversation)}" if conversation else ""
        self._note(f"{printable_line(agent.name)} ({agent.id}){which}. /help lists the commands; Ctrl-C stops a turn.")

    def _show_open_approvals(self) -> None:
        interrupted, waiting = self._portal.call(open_approvals, self._host, self._thread)
        if interrupted:
            self._note("The last turn was interrupted. Its effects remain; send a message to continue.")
        self._settle_approvals(waiting)

    def _read_lines(self) -> None:
        text = read_line(INPUT_PROMPT).strip()
        self._interrupted = False
        if not text:
            return
        add_to_history(text)
        try:
            self._handle_line(text)
        except PendingApproval:
            # The last turn waits for approval, or another person's turn does.
            self._note("A call waits for your approval first; send your message again after that.")
            thread = self._thread
            self._settle_approvals(
                self._portal.call(self._host.pending, thread.agent.id, thread.conversation_id, thread.whose)
            )
        except FrontdeskError as error:
            print(f"frontdesk: {printable_text(str(error))}", file=sys.stderr)

    def _interrupt(self) -> None:
        """Handle Ctrl-C without a running turn."""
        print()
        if self._interrupted:
            raise ChatLeft
        self._interrupted = True
        self._note("Ctrl-C again leaves, and so does Ctrl-D.")

    def _handle_line(self, text: str) -> None:
        # Two slashes start a message that begins with one.
        if not text.startswith("/") or text.startswith("//"):
            self._settle_approvals(self._take_turn(self._thread.message_prompt(text.removeprefix("/"))))
        elif text == "/quit":
            raise ChatLeft
        elif text == "/new":
            self._thread = self._portal.call(begin_conversation, self._host, self._thread)
            self._always.clear()
            self._greet()
        elif text in SLASH_COMMANDS:
            self._print(self._portal.call(SLASH_COMMANDS[text], self._host, self._thread, self._pen))
        else:
            self._print(
                CHAT_COMMANDS_HELP
                if text == "/help"
                else f"There is no {printable_line(text, 40)}.\n{CHAT_COMMANDS_HELP}"
            )

    def _settle_approvals(self, waiting: Sequence[ApprovalRequest]) -> None:
        """Ask for each approval and let the agent continue, until nothing waits."""
        while waiting:
            approvals = [self._approval(request, (at, len(waiting))) for at, request in enumerate(waiting, 1)]
            waiting = self._take_turn(self._thread.approval_prompt(approvals))

    def _approval(self, request: ApprovalRequest, place: tuple[int, int]) -> Approval:
        if request.name in self._always:
            self._note(f"{printable_line(request.name)} is approved, as always in this chat.")
            return Approval(request.call_id, approve=True)
        self._print(describe_approval(request, place, self._pen))
        said = self._read_approval()
        if said.always:
            self._always.add(request.name)
        return Approval(request.call_id, said.approve, "" if said.approve else said.reason or REJECTION_REASON)

    def _read_approval(self) -> ApprovalReply:
        while True:
            if (said := parse_approval(read_line(APPROVAL_QUESTION))) is not None:
                return said

    def _take_turn(self, prompt: Prompt) -> Sequence[ApprovalRequest]:
        """Take a turn, print it, and return the calls that wait for approval. Ctrl-C cancels it; twice leaves."""
        scope = self._portal.call(anyio.CancelScope)
        turn = None
        try:
            turn = self._portal.start_task_soon(self._draw_turn, prompt, scope)
            return turn.result()
        except KeyboardInterrupt:
            self._interrupted = True
            self._portal.call(scope.cancel)
            return turn.result() if turn else ()

    async def _draw_turn(self, prompt: Prompt, scope: anyio.CancelScope) -> Sequence[ApprovalRequest]:
        pen, waiting, stop = self._pen, list[ApprovalRequest](), StopReason.CANCELLED
        with scope:
            async with aclosing(run_journaled_turn(self._host, self._journal, SURFACE, prompt)) as events:
                async for event in events:
                    if isinstance(event, ApprovalRequest):
                        waiting.append(event)
                    elif isinstance(event, Done):
                        stop = event.stop
                    else:
                        text, pen = draw_event(event, pen)
                        self._print(text)
        self._print(draw_event(Done(stop), pen)[0])
        # A chat has no background tasks that write the journal. What cannot be written now is retried at the end.
        with suppress(Unavailable):
            await self._journal.flush()
        return waiting if stop is StopReason.REQUIRES_APPROVAL else ()

    def _note(self, text: str) -> None:
        self._print(f"{paint(text, Colour.DIM, self._pen)}\n")

    def _print(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def talk(
    agent: str,
    /,
    *,
    conversation: str | None = None,
    new: Flag = False,
    message: Text | None = None,
    as_json: JsonFlag = False,
    user: str | None = None,
) -> None:
    """Talk with an agent.

    Parameters
    ----------
    agent
        Its id, or its name if only one agent has it.
    conversation
        The conversation to continue. Without it, the agent's first.
    new
        Start a new conversation.
    message
        Send this message, print the answer and exit. Standard input is the message when it is not a terminal.
    as_json
        Print each event of that one turn as a line of JSON.
    user
        The person that you act as. Without it, no particular person.
    """
    if conversation and new:
        raise Invalid("Give --conversation or --new, not both")
    prepare_terminal()
    settings = configure_quiet_logs(Settings.read())
    text = _read_message(message, as_json=as_json)

    async def enter(app: App) -> ChatThread:
        # Built-in agents find tools by what the database knows about them.
        await app.tools.catalogue.load()
        found = await find_agent(app.host, agent)
        if (mine := await app.host.agent_for_person(found.id, user)) != found.id:
            found = await find_agent(app.host, mine)
        thread = ChatThread(found, conversation, user)
        return await begin_conversation(app.host, thread) if new else thread

    if text is None:
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(open_app(settings)) as app:
            TerminalChat(portal, app, portal.call(enter, app), colour=has_colour()).run()
        return

    async def say(app: App) -> bool:
        return await take_one_turn(app, await enter(app), text, as_json=as_json)

    if not run_with_app(say, settings):
        sys.exit(1)


def _read_message(given: str | None, *, as_json: bool) -> str | None:
    """The message of a single turn. None for an interactive chat."""
    if given is None and sys.stdin.isatty():
        if as_json:
            raise Invalid("--json is for one turn: give --message, or the message on standard input")
        return None
    # Arguments from the shell may be invalid text, and a lone surrogate cannot be stored.
    text = (sys.stdin.read() if given is None else given).strip().encode(errors="replace").decode()
    if not text:
        raise Invalid("There is no message; give --message, or the message on standard input")
    return text
