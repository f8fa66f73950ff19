"""The Python SDK's own client, as an editor written in Python would use it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import acp
from acp.client.connection import ClientSideConnection
from acp.schema import AllowedOutcome, ReadTextFileResponse, RequestPermissionResponse, WriteTextFileResponse

from tests.support.acp.process import FRONTDESK, LONGEST_FRAME
from tests.support.desk import clean_environment


@dataclass(slots=True)
class Sitting:
    """An editor whose person allows everything once, and which has files and keeps what it is told."""

    told: list[Any] = field(default_factory=list[Any])
    permitted: list[Any] = field(default_factory=list[Any])
    written: dict[str, str] = field(default_factory=dict[str, str])

    def on_connect(self, conn: Any) -> None:
        """Nothing to do."""

    async def session_update(self, update: Any, **_more: Any) -> None:
        self.told.append(update)

    async def request_permission(self, options: list[Any], tool_call: Any, **_more: Any) -> RequestPermissionResponse:
        self.permitted.append(tool_call)
        once = next(option for option in options if option.kind == "allow_once")
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=once.option_id))

    async def read_text_file(self, path: str, **_more: Any) -> ReadTextFileResponse:
        if path not in self.written:
            raise acp.RequestError.resource_not_found(path)
        return ReadTextFileResponse(content=self.written[path])

    async def write_text_file(self, content: str, path: str, **_more: Any) -> WriteTextFileResponse:
        self.written[path] = content
        return WriteTextFileResponse()

    def updates(self, kind: str) -> list[Any]:
        return [update for update in self.told if update.session_update == kind]

    def said(self) -> str:
        return "".join(update.content.text for update in self.updates("agent_message_chunk"))


@asynccontextmanager
async def sdk_editor(data: Path, **settings: str) -> AsyncGenerator[tuple[ClientSideConnection, Sitting]]:
    """A connection of the SDK's to an agent of its own."""
    sitting: Any = Sitting()
    program, *arguments = FRONTDESK
    async with acp.spawn_agent_process(
        sitting,
        program,
        *arguments,
        env=clean_environment(FRONTDESK_DATA=str(data), **settings),
        cwd=data.parent,
        transport_kwargs={"limit": LONGEST_FRAME},
    ) as (connection, _process):
        yield connection, sitting
