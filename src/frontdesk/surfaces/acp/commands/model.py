"""A slash command: what it is called, and what it does."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from frontdesk.app import App
from frontdesk.identity.model import Caller
from frontdesk.loop.events import Event
from frontdesk.workspace.sessions.model import Session


@dataclass(frozen=True, slots=True)
class Desk:
    """Where a command is given: in which house, session and by whom; `caller` is of this one request."""

    app: App
    session: Session
    caller: Caller


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command says, as Markdown, and what it shows besides, such as a `MemoryEdit`.

    `change` is the session as it is to be kept from now on, where the command changes it.
    """

    text: str
    events: Sequence[Event] = ()
    change: Session | None = None


# Does a command, given what was said after its name.
Run = Callable[[Desk, str], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Command:
    """`hint` says what may follow the name; empty where nothing does."""

    name: str
    description: str
    run: Run
    hint: str = ""
