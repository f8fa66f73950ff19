"""Renders the events of a turn as text for a terminal. No I/O."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from frontdesk.interfaces.cli.output import format_arguments, printable_line, printable_text, reveal_hidden
from frontdesk.llm.events import (
    ApprovalRequest,
    Compacted,
    Done,
    Event,
    Failed,
    MemoryEdit,
    Plan,
    StepStatus,
    StopReason,
    TextChunk,
    ThoughtChunk,
    ToolCall,
    ToolReturn,
    ToolStatus,
    Usage,
    UserMedia,
    UserText,
)

INPUT_PROMPT = "you> "
ARGUMENT_LENGTH = 60
RESULT_LENGTH = 100

STEP_BOXES = {StepStatus.COMPLETED: "[x]", StepStatus.IN_PROGRESS: "[>]", StepStatus.PENDING: "[ ]"}
STOP_MESSAGES = {
    StopReason.MAX_STEPS: "Stopped: the agent has used all the steps of one turn. Tell it to continue.",
    StopReason.MAX_TOKENS: "Stopped: the answer has reached the model's maximum length. Tell it to continue.",
    StopReason.REFUSAL: "The model declined to answer.",
    StopReason.CANCELLED: "Cancelled.",
    StopReason.INTERRUPTED: "Interrupted: Frontdesk was stopped in the middle of this turn.",
}


class Colour(StrEnum):
    """ANSI colour codes."""

    DIM = "2"
    RED = "31"
    GREEN = "32"
    YELLOW = "33"
    CYAN = "36"


class StreamedKind(StrEnum):
    """The kind of text that is being streamed."""

    TEXT = "text"
    THOUGHT = "thought"


@dataclass(frozen=True, slots=True)
class TerminalState:
    """The state of the output: the kind of the current text, whether the line is empty, usage, and the outcome."""

    colour: bool = False
    streaming: StreamedKind | None = None
    fresh: bool = True
    usage: Usage | None = None
    failed: bool = False


def paint(text: str, ink: Colour, pen: TerminalState) -> str:
    return f"\x1b[{ink}m{text}\x1b[0m" if pen.colour and text else text


def draw_event(event: Event, pen: TerminalState) -> tuple[str, TerminalState]:
    """The text to print for an event, and the next state."""
    match event:
        case TextChunk(text):
            return _draw_streamed(printable_text(text), StreamedKind.TEXT, pen)
        case ThoughtChunk(text):
            return _draw_streamed(printable_text(text), StreamedKind.THOUGHT, pen)
        case Usage():
            return "", replace(pen, usage=event)
        case _:
            lines = "".join(f"{one}\n" for one in _event_lines(event, pen))
            if isinstance(event, Done):
                return line_end(pen) + lines, TerminalState(pen.colour)
            failed = pen.failed or isinstance(event, Failed)
            return (
                (line_end(pen) + lines, TerminalState(pen.colour, usage=pen.usage, failed=failed))
                if lines
                else ("", pen)
            )


def line_end(pen: TerminalState) -> str:
    """The text that ends a started line."""
    return "" if pen.fresh else "\n"


def _draw_streamed(text: str, speech: StreamedKind, pen: TerminalState) -> tuple[str, TerminalState]:
    if pen.streaming is not speech:
        # Models often start with empty lines.
        text = text.lstrip("\n")
    if not text:
        return "", pen
    start = ""
    if pen.streaming is not speech:
        start = line_end(pen) + (paint("(thinking) ", Colour.DIM, pen) if speech is StreamedKind.THOUGHT else "")
    shown = paint(text, Colour.DIM, pen) if speech is StreamedKind.THOUGHT else text
    return start + shown, replace(pen, streaming=speech, fresh=text.endswith("\n"))


def _event_lines(event: Event, pen: TerminalState) -> Iterator[str]:  # noqa: C901 - a line for each event
    match event:
        case UserText(text):
            yield f"{INPUT_PROMPT}{printable_text(text)}"
        case UserMedia(mime, data):
            yield f"{INPUT_PROMPT}[{printable_line(mime)}, {len(data):,} bytes]"
        case Compacted(by_model=by_model):
            how = "summed up" if by_model else "shortened to your own words, as no model summed it up"
            yield paint(f"  What was said earlier has been {how}, to make room.", Colour.DIM, pen)
        case ToolCall(_, name, given):
            yield paint(f"→ {printable_line(name)}({format_arguments(given, ARGUMENT_LENGTH)})", Colour.CYAN, pen)
        case ToolReturn():
            yield _result_line(event, pen)
        case ApprovalRequest(_, name, given):
            yield paint(
                f"? {printable_line(name)}({format_arguments(given, ARGUMENT_LENGTH)}) waits for approval",
                Colour.YELLOW,
                pen,
            )
        case MemoryEdit():
            yield from memory_diff_lines(event, pen)
        case Plan(steps) if steps:
            yield "  plan"
            yield from (f"  {STEP_BOXES[step.status]} {printable_line(step.text)}" for step in steps)
        case Failed(trouble, message):
            yield paint(f"✗ The turn failed ({trouble}): {printable_text(message)}", Colour.RED, pen)
        case Done(stop):
            yield from _stop_lines(stop, pen)
        case _:
            return


def _result_line(event: ToolReturn, pen: TerminalState) -> str:
    mark = paint("✓", Colour.GREEN, pen) if event.status is ToolStatus.OK else paint("✗", Colour.RED, pen)
    status = "" if event.status in (ToolStatus.OK, ToolStatus.ERROR) else f" {event.status.replace('_', ' ')}:"
    result = paint(printable_line(event.text, RESULT_LENGTH), Colour.DIM, pen)
    return f"  {mark} {printable_line(event.name)}{status} {result}".rstrip()


def memory_diff_lines(edit: MemoryEdit, pen: TerminalState) -> Iterator[str]:
    """A block's label, and the changed lines with one line around them."""
    yield f"  memory: {printable_line(edit.label)}"
    before, after = _printable_lines(edit.before), _printable_lines(edit.after)
    for number, changed in enumerate(difflib.unified_diff(before, after, lineterm="", n=1)):
        if number < 2:
            # The first two lines of a patch name the files.
            continue
        match changed[:1]:
            case "+":
                yield paint(f"  + {changed[1:]}", Colour.GREEN, pen)
            case "-":
                yield paint(f"  - {changed[1:]}", Colour.RED, pen)
            case "@":
                if number > 2:
                    yield paint("  ⋮", Colour.DIM, pen)
            case _:
                yield paint(f"    {changed[1:]}", Colour.DIM, pen)


def describe_approval(request: ApprovalRequest, place: tuple[int, int], pen: TerminalState) -> str:
    """A call that waits for approval, with all its arguments."""
    number, count = place
    which = f" ({number} of {count})" if count > 1 else ""
    head = paint(f"? The agent asks to call {printable_line(request.name)}{which}", Colour.YELLOW, pen)
    return f"{head}\n{reveal_hidden(request.arguments, indent=2)}\n"


def describe_usage(usage: Usage) -> str:
    """The token usage of a turn."""
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    parts = [f"{usage.input_tokens:,} tokens in{cached}", f"{usage.output_tokens:,} out"]
    if usage.cost_usd is not None:
        parts.append(f"${usage.cost_usd:.4f}")
    if usage.model:
        parts.append(printable_line(usage.model))
    return ", ".join(parts)


def _stop_lines(stop: StopReason, pen: TerminalState) -> Iterator[str]:
    if stop is StopReason.ERROR and not pen.failed:
        # The history does not contain the reason.
        yield paint("✗ The turn failed.", Colour.RED, pen)
    if stop in STOP_MESSAGES:
        yield paint(STOP_MESSAGES[stop], Colour.YELLOW, pen)
    if pen.usage is not None:
        yield paint(describe_usage(pen.usage), Colour.DIM, pen)


def _printable_lines(value: str) -> Sequence[str]:
    readable = printable_text(value)
    return readable.split("\n") if readable else []
