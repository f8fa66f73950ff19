"""`python -m bench.editors.direct DATA WORK URL`: runs the host without an editor; reads prompts and prints times.

Each line is a prompt; an empty line begins a new conversation. It sends what an editor's session in WORK sends.
"""

import json
import sys
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path

import anyio

from bench.editors.editor import Taken
from bench.editors.places import settings_of
from frontdesk.agents.host import Prompt
from frontdesk.app import App, open_app, running
from frontdesk.coding.commands import LocalCommands
from frontdesk.coding.files import FileView, LocalFiles
from frontdesk.coding.guard import PathGuard
from frontdesk.coding.model import CodingSession, PermissionDecision, PermissionRequest, ShownItem
from frontdesk.coding.paths import WorkspaceRoots
from frontdesk.coding.tools import CodingContext, coding_tools
from frontdesk.identity.model import Caller
from frontdesk.interfaces import logs
from frontdesk.interfaces.acp.session import MAX_STEPS, session_context
from frontdesk.llm.events import TextChunk
from frontdesk.llm.tools import Tool
from frontdesk.settings import Settings


async def serve(data: Path, work: Path, url: str) -> None:
    settings = Settings.model_validate(settings_of(data, url))
    logs.configure_logs(settings)
    caller = Caller("bench", user_id="bench", local=True, any_agent=True)
    async with open_app(settings) as app, running(app):
        tools = coding_tools(_bench(WorkspaceRoots.from_folders(work)))
        session = await app.workspace.sessions.open(caller, work)
        print("ready", flush=True)
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            if words := line.strip():
                print(json.dumps(asdict(await _take(app, session, tools, caller, words))), flush=True)
            else:
                session = await app.workspace.sessions.open(caller, work)
                print("ready", flush=True)


async def _take(app: App, session: CodingSession, tools: Sequence[Tool], caller: Caller, words: str) -> Taken:
    started, first, pieces = time.perf_counter(), 0.0, 0
    prompt = Prompt(
        session.agent_id,
        caller,
        words,
        conversation_id=session.conversation_id,
        tools=tools,
        max_steps=MAX_STEPS,
        context=session_context(session),
    )
    async with aclosing(app.host.send(prompt)) as events:
        async for event in events:
            if isinstance(event, TextChunk):
                first, pieces = first or time.perf_counter(), pieces + 1
    return Taken(first - started, time.perf_counter() - started, pieces)


def _bench(roots: WorkspaceRoots) -> CodingContext:
    """The resources of a session whose editor offers no abilities and allows everything."""
    files = LocalFiles(roots)

    async def leave(_answer_request: PermissionRequest) -> PermissionDecision:
        return PermissionDecision(True)

    async def show(_call_id: str, _part: ShownItem) -> None:
        pass

    return CodingContext(roots, FileView(files, files), LocalCommands(), leave, show, files, PathGuard(roots))


if __name__ == "__main__":
    anyio.run(serve, Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
