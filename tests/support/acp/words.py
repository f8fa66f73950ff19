"""What goes over the wire, as tests write and read it."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.acp.schema import Json
from tests.support.desk import START_SECONDS

PERMISSION = "session/request_permission"
STOPS = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"})
Id = int | str
# What an agent does that has said something and is not done for a long time.
GOING_ON: tuple[Json, ...] = ({"text": "going on", "tool": "list_files"}, {"delay": 600, "text": "never"})
# What an editor does when its agent asks it by a method; raises `Refused` where it will not.
Answer = Callable[[Json], Awaitable[Json]]


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, code: int, message: str = "No", data: Any = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.data = data


@dataclass(frozen=True, slots=True)
class Frame:
    """One message; `ours` where this side sent it."""

    ours: bool
    json: Json

    @property
    def method(self) -> str:
        return self.json.get("method", "")


async def outcome(waiting: asyncio.Future[Json], seconds: float = START_SECONDS) -> Json:
    """What a request under way comes to; `Refused` where that is an error."""
    async with asyncio.timeout(seconds):
        frame = await waiting
    if "error" in frame:
        error = frame["error"]
        raise Refused(error["code"], error["message"], error.get("data"))
    return frame["result"]


def prompt(session_id: str, said: str | Sequence[Json], **more: Any) -> Json:
    blocks = [{"type": "text", "text": said}] if isinstance(said, str) else list(said)
    return {"sessionId": session_id, "prompt": blocks, **more}


def script(*steps: Json) -> str:
    """Words that make the offline model do exactly this."""
    return f"@@{json.dumps(steps)}@@"


def update_in(frame: Frame) -> Json:
    return frame.json["params"]["update"] if frame.method == "session/update" else {}


def choosing(option: str) -> Answer:
    """A person who always chooses this, when asked for permission."""

    async def choose(params: Json) -> Json:
        offered = {one["kind"]: one["optionId"] for one in params["options"]}
        return {"outcome": {"outcome": "selected", "optionId": offered[option]}}

    return choose


ALLOW = choosing("allow_once")
REJECT = choosing("reject_once")
