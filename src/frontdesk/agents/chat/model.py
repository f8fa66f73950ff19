"""A person's session with an agent."""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from frontdesk.agents.host import Agent, Said
from frontdesk.loop.events import ApprovalRequest

# A session ends a day after it was last used, and its owner may have it back for a month after that.
LIFETIME = timedelta(hours=24)
RESTORABLE = timedelta(days=30)
SESSION_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Session:
    """One person's conversation with one agent; the conversation itself is kept by the agent's host."""

    id: str
    user_id: str
    agent_id: str
    conversation_id: str
    created_at: datetime
    expires_at: datetime

    def open_at(self, now: datetime) -> bool:
        return now < self.expires_at

    def used_at(self, now: datetime) -> "Session":
        return replace(self, expires_at=now + LIFETIME)


@dataclass(frozen=True, slots=True)
class View:
    """A session with what its owner may want to see of it."""

    session: Session
    agent: Agent
    said: Sequence[Said] = ()
    pending: Sequence[ApprovalRequest] = ()


@dataclass(frozen=True, slots=True)
class Taken:
    """A message that was taken; while it is `queued` behind another reply, only this process' memory has it."""

    message_id: str
    queued: bool = False


def new_session_id() -> str:
    return secrets.token_hex(16)


def new_message_id() -> str:
    return secrets.token_hex(12)
