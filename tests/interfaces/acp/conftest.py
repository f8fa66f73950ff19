"""Fixtures: an editor with an agent for a module's tests, the person who gives permission, and the shown calls."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.acp.client import Client, editor
from tests.support.acp.schema import ALLOW, PERMISSION, Answer, Json, script
from tests.support.postgres import Ready

# The person who gives permission, the final state of the calls, and a check that nothing is sent


CANCELLED = "cancelled"
AWAY = "away"
TERMINAL = frozenset({"completed", "failed"})
# The same agent without its embedding model, which takes long to load.
QUICKLY = {"FRONTDESK_EMBEDDINGS": "off"}


@dataclass(slots=True)
class Person:
    """The person who gives permission: makes the same choice until a test changes it, or is away."""

    choice: str = "allow_once"
    asked: list[Json] = field(default_factory=list[Json])

    async def __call__(self, params: Json) -> Json:
        self.asked.append(params)
        if self.choice == AWAY:
            await asyncio.Event().wait()
        if self.choice == CANCELLED:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": self.choice}}

    def chooses(self, choice: str) -> None:
        """From now on; earlier requests are forgotten."""
        self.choice, self.asked = choice, []


@dataclass(frozen=True, slots=True)
class Desk:
    """A shared agent, and the person at its editor."""

    client: Client
    person: Person


@asynccontextmanager
async def introduced(
    data: Path,
    *,
    capabilities: Json | None = None,
    answer: Mapping[str, Answer] | None = None,
    **settings: str,
) -> AsyncGenerator[Desk]:
    """An editor after its handshake, and a person who allows everything."""
    person = Person()
    answers = {PERMISSION: person, **(answer or {})}
    async with editor(data, capabilities=capabilities, answer=answers, **QUICKLY, **settings) as client:
        await client.initialize()
        yield Desk(client, person)


def calling(tool: str, **args: Any) -> str:
    """A prompt that causes one tool call."""
    return script({"tool": tool, "args": args}, {"text": "done"})


def folder(above: Path, name: str = "work") -> Path:
    made = above / name
    made.mkdir()
    return made


def calls(client: Client, session: str, since: int = 0) -> dict[str, dict[str, Any]]:
    """The final tool calls of a session by their ids; each was shown complete before it changed."""
    shown: dict[str, dict[str, Any]] = {}
    for update in client.updates(session_id=session, since=since):
        if update["sessionUpdate"] == "tool_call":
            assert update["toolCallId"] not in shown, f"shown twice: {update}"
            shown[update["toolCallId"]] = dict(update)
        elif update["sessionUpdate"] == "tool_call_update":
            shown[update["toolCallId"]] |= update
    return shown


def only_call(client: Client, session: str, since: int = 0, *, tool: str = "") -> dict[str, Any]:
    [found] = [call for call in calls(client, session, since).values() if tool in ("", call.get("name"))]
    return found


def said_in(client: Client, session: str, kind: str = "agent_message_chunk", since: int = 0) -> dict[str, str]:
    """The messages of a session by their ids."""
    messages: dict[str, str] = {}
    for chunk in client.updates(kind, session_id=session, since=since):
        messages[chunk["messageId"]] = messages.get(chunk["messageId"], "") + chunk["content"].get("text", "")
    return messages


def is_shown_by_its_file(diff: Json) -> bool:
    """Whether a diff names a file that has the new text."""
    path = Path(diff["path"])
    return path.is_absolute() and path.read_text() == diff["newText"]


def values(options: Json) -> dict[str, str]:
    """The value of each option."""
    return {one["id"]: one["currentValue"] for one in options["configOptions"]}


async def set_option(client: Client, session: str, option: str, value: str) -> Json:
    asked = {"sessionId": session, "configId": option, "value": value}
    return await client.request("session/set_config_option", asked)


async def is_quiet(client: Client, session: str, since: int, elsewhere: Path) -> None:
    """The agent sent nothing about a session during a whole turn of another one."""
    other = await client.open_session(elsewhere)
    await client.prompt(other, script({"text": "meanwhile"}))
    await client.heard()
    assert client.updates(session_id=session, since=since) == []


# An editor with an agent of its own, which the tests of a module share


Opening = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> AsyncGenerator[Client]:
    """An editor that can only ask the person, who allows everything."""
    data = ready.in_folder(tmp_path_factory.mktemp("editor") / "data")
    async with editor(data, answer={PERMISSION: ALLOW}) as opened:
        await opened.initialize()
        yield opened


@pytest.fixture
def opening(tmp_path: Path, ready: Ready) -> Opening:
    """Opens an editor for one test, on one data folder however often; without the handshake."""
    data = ready.in_folder(tmp_path / "data")

    def open_editor(answer: dict[str, Answer] | None = None, **more: Any) -> AbstractAsyncContextManager[Client]:
        return editor(data, answer={PERMISSION: ALLOW} | (answer or {}), **more)

    return open_editor


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A work folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder
