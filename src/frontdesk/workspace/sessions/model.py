"""A session of an editor, as it is kept."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypedDict
from uuid import uuid4

from frontdesk.workspace.permissions.model import Mode

SESSION_ID = re.compile(r"sess_[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation of an agent with a person, in a folder and perhaps some others.

    `model` and `effort` are None where the agent's own are meant. `cost_usd` is None until a price was known.
    """

    id: str
    agent_id: str
    conversation_id: str
    cwd: Path
    created_at: datetime
    updated_at: datetime
    user_id: str | None = None
    directories: tuple[Path, ...] = ()
    title: str = ""
    mode: Mode = Mode.ASK
    model: str | None = None
    effort: str | None = None
    asks_memory: bool = False
    cost_usd: float | None = None


class Changes(TypedDict, total=False):
    """What may change of a session."""

    agent_id: str
    conversation_id: str
    cwd: Path
    directories: tuple[Path, ...]
    title: str
    mode: Mode
    model: str | None
    effort: str | None
    asks_memory: bool
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Page:
    """Some sessions, the newest first, and what to ask for the next ones with, where there are more."""

    sessions: Sequence[Session]
    next_cursor: str | None = None


def new_session_id() -> str:
    return f"sess_{uuid4().hex}"
