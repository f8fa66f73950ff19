"""What the person types: lines with editing where there is any, and their word on what waits for approval."""

import os
import sys
from dataclasses import dataclass
from io import TextIOWrapper

try:
    import readline
except ImportError:
    readline = None

CHOICE = "approve? [y]es / [n]o (reason) / [a]lways for this tool in this chat: "
YES = ("y", "yes")
NO = ("n", "no")
ALWAYS = ("a", "always")


class Left(Exception):
    """The person leaves the chat."""


@dataclass(frozen=True, slots=True)
class Word:
    """What was said on one request; `always` holds for the tool as long as the chat lasts."""

    approve: bool
    always: bool = False
    reason: str = ""


def word(text: str) -> Word | None:
    """`y`, `n too risky`, `always`; None for anything else."""
    said, _, rest = text.strip().partition(" ")
    said, reason = said.lower().rstrip(",:"), rest.strip()
    if said in NO:
        return Word(approve=False, reason=reason)
    if reason:
        return None
    return Word(approve=True, always=said in ALWAYS) if said in YES + ALWAYS else None


def prepare() -> None:
    """Let no character that the terminal cannot take, or send, break the chat."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    if readline is not None:
        # Only what is said to the agent is worth recalling, not each yes and no.
        readline.set_auto_history(False)


def read(prompt: str) -> str:
    """A line; Ctrl-D is `Left`."""
    try:
        return input(prompt)
    except EOFError as error:
        print()
        raise Left from error


def remember(text: str) -> None:
    """Offer a line again with the arrow keys."""
    if readline is not None:
        readline.add_history(text)


def in_colour() -> bool:
    """Whether to colour what is printed (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
