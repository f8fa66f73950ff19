"""Draws a turn for a terminal: each event becomes text, given where the last one left the pen."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from frontdesk.loop.events import (
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
from frontdesk.surfaces.cli.plain import arguments, line, plain, revealed

YOU = "you> "
ARGUMENT = 60
RESULT = 100

BOXES = {StepStatus.COMPLETED: "[x]", StepStatus.IN_PROGRESS: "[>]", StepStatus.PENDING: "[ ]"}
STOPS = {
    StopReason.MAX_STEPS: "Stopped: the agent has taken all the steps that one turn may have. Tell it to go on.",
    StopReason.MAX_TOKENS: "Stopped: the answer is as long as the model may make it. Tell it to go on.",
    StopReason.REFUSAL: "The model declined to answer.",
    StopReason.CANCELLED: "Cancelled.",
    StopReason.INTERRUPTED: "Interrupted: Frontdesk was stopped in the middle of this turn.",
}


class Ink(StrEnum):
    """The colours, as the terminal knows them."""

    DIM = "2"
    RED = "31"
    GREEN = "32"
    YELLOW = "33"
    CYAN = "36"


class Speech(StrEnum):
    """What the agent is in the middle of saying."""

    TEXT = "text"
    THOUGHT = "thought"


@dataclass(frozen=True, slots=True)
class Pen:
    """Where drawing stands: what is being said, whether the line is empty, what the turn took so far, how it went."""

    colour: bool = False
    saying: Speech | None = None
    fresh: bool = True
    usage: Usage | None = None
    failed: bool = False


def painted(text: str, ink: Ink, pen: Pen) -> str:
    return f"\x1b[{ink}m{text}\x1b[0m" if pen.colour and text else text


def drawn(event: Event, pen: Pen) -> tuple[str, Pen]:
    """What to print for an event, and where the pen is then."""
    match event:
        case TextChunk(text):
            return _spoken(plain(text), Speech.TEXT, pen)
        case ThoughtChunk(text):
            return _spoken(plain(text), Speech.THOUGHT, pen)
        case Usage():
            return "", replace(pen, usage=event)
        case _:
            lines = "".join(f"{one}\n" for one in _lines(event, pen))
            if isinstance(event, Done):
                return closing(pen) + lines, Pen(pen.colour)
            failed = pen.failed or isinstance(event, Failed)
            return (closing(pen) + lines, Pen(pen.colour, usage=pen.usage, failed=failed)) if lines else ("", pen)


def closing(pen: Pen) -> str:
    """What ends a line that was begun."""
    return "" if pen.fresh else "\n"


def _spoken(text: str, speech: Speech, pen: Pen) -> tuple[str, Pen]:
    if pen.saying is not speech:
        # Models like to begin with empty lines.
        text = text.lstrip("\n")
    if not text:
        return "", pen
    start = ""
    if pen.saying is not speech:
        start = closing(pen) + (painted("(thinking) ", Ink.DIM, pen) if speech is Speech.THOUGHT else "")
    shown = painted(text, Ink.DIM, pen) if speech is Speech.THOUGHT else text
    return start + shown, replace(pen, saying=speech, fresh=text.endswith("\n"))


def _lines(event: Event, pen: Pen) -> Iterator[str]:  # noqa: C901 - a line for each event
    match event:
        case UserText(text):
            yield f"{YOU}{plain(text)}"
        case UserMedia(mime, data):
            yield f"{YOU}[{line(mime)}, {len(data):,} bytes]"
        case Compacted(by_model=by_model):
            how = "summed up" if by_model else "shortened to your own words, as no model summed it up"
            yield painted(f"  What was said earlier has been {how}, to make room.", Ink.DIM, pen)
        case ToolCall(_, name, given):
            yield painted(f"→ {line(name)}({arguments(given, ARGUMENT)})", Ink.CYAN, pen)
        case ToolReturn():
            yield _result(event, pen)
        case ApprovalRequest(_, name, given):
            yield painted(f"? {line(name)}({arguments(given, ARGUMENT)}) waits for approval", Ink.YELLOW, pen)
        case MemoryEdit():
            yield from memory_diff(event, pen)
        case Plan(steps) if steps:
            yield "  plan"
            yield from (f"  {BOXES[step.status]} {line(step.text)}" for step in steps)
        case Failed(trouble, message):
            yield painted(f"✗ The turn failed ({trouble}): {plain(message)}", Ink.RED, pen)
        case Done(stop):
            yield from _end(stop, pen)
        case _:
            return


def _result(event: ToolReturn, pen: Pen) -> str:
    mark = painted("✓", Ink.GREEN, pen) if event.status is ToolStatus.OK else painted("✗", Ink.RED, pen)
    status = "" if event.status in (ToolStatus.OK, ToolStatus.ERROR) else f" {event.status.replace('_', ' ')}:"
    return f"  {mark} {line(event.name)}{status} {painted(line(event.text, RESULT), Ink.DIM, pen)}".rstrip()


def memory_diff(edit: MemoryEdit, pen: Pen) -> Iterator[str]:
    """A block's label, and the lines that went and came, with one line around them."""
    yield f"  memory: {line(edit.label)}"
    before, after = _split(edit.before), _split(edit.after)
    for number, changed in enumerate(difflib.unified_diff(before, after, lineterm="", n=1)):
        if number < 2:
            # The two lines of a patch that name the files.
            continue
        match changed[:1]:
            case "+":
                yield painted(f"  + {changed[1:]}", Ink.GREEN, pen)
            case "-":
                yield painted(f"  - {changed[1:]}", Ink.RED, pen)
            case "@":
                if number > 2:
                    yield painted("  ⋮", Ink.DIM, pen)
            case _:
                yield painted(f"    {changed[1:]}", Ink.DIM, pen)


def asking(request: ApprovalRequest, place: tuple[int, int], pen: Pen) -> str:
    """A call that waits for approval, with everything it would be given."""
    number, count = place
    which = f" ({number} of {count})" if count > 1 else ""
    head = painted(f"? The agent asks to call {line(request.name)}{which}", Ink.YELLOW, pen)
    return f"{head}\n{revealed(request.arguments, indent=2)}\n"


def spent(usage: Usage) -> str:
    """What a turn took, in a few words."""
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    parts = [f"{usage.input_tokens:,} tokens in{cached}", f"{usage.output_tokens:,} out"]
    if usage.cost_usd is not None:
        parts.append(f"${usage.cost_usd:.4f}")
    if usage.model:
        parts.append(line(usage.model))
    return ", ".join(parts)


def _end(stop: StopReason, pen: Pen) -> Iterator[str]:
    if stop is StopReason.ERROR and not pen.failed:
        # A history does not keep why.
        yield painted("✗ The turn failed.", Ink.RED, pen)
    if stop in STOPS:
        yield painted(STOPS[stop], Ink.YELLOW, pen)
    if pen.usage is not None:
        yield painted(spent(pen.usage), Ink.DIM, pen)


def _split(value: str) -> Sequence[str]:
    readable = plain(value)
    return readable.split("\n") if readable else []
