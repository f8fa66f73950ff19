"""`python -m bench.editors.direct DATA WORK URL`: the host without an editor; it is told prompts, and tells times.

A line is a prompt, and an empty one begins a new conversation. What is sent is what an editor's session in WORK sends.
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
from frontdesk.identity.model import Caller
from frontdesk.loop.events import TextChunk
from frontdesk.loop.tools import Tool
from frontdesk.settings import Settings
from frontdesk.surfaces import logs
from frontdesk.surfaces.acp.live.answering import STEPS
from frontdesk.surfaces.acp.live.context import context_of
from frontdesk.workspace.coding.model import Bench, Shown
from frontdesk.workspace.coding.tools import coding_tools
from frontdesk.workspace.commands.local import LocalCommands
from frontdesk.workspace.files.local import LocalFiles
from frontdesk.workspace.permissions.guard import Guard
from frontdesk.workspace.permissions.model import Deed, Word
from frontdesk.workspace.roots import Roots
from frontdesk.workspace.sessions.model import Session


async def serve(data: Path, work: Path, url: str) -> None:
    settings = Settings.model_validate(settings_of(data, url))
    logs.configure(settings)
    caller = Caller("bench", user_id="bench", local=True, any_agent=True)
    async with open_app(settings) as app, running(app):
        tools = coding_tools(_bench(Roots.of(work)))
        session = await app.workspace.sessions.open(caller, work)
        print("ready", flush=True)
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            if words := line.strip():
                print(json.dumps(asdict(await _take(app, session, tools, caller, words))), flush=True)
            else:
                session = await app.workspace.sessions.open(caller, work)
                print("ready", flush=True)


async def _take(app: App, session: Session, tools: Sequence[Tool], caller: Caller, words: str) -> Taken:
    started, first, pieces = time.perf_counter(), 0.0, 0
    prompt = Prompt(
        session.agent_id,
        caller,
        words,
        conversation_id=session.conversation_id,
        tools=tools,
        max_steps=STEPS,
        context=context_of(session),
    )
    async with aclosing(app.host.send(prompt)) as events:
        async for event in events:
            if isinstance(event, TextChunk):
                first, pieces = first or time.perf_counter(), pieces + 1
    return Taken(first - started, time.perf_counter() - started, pieces)


def _bench(roots: Roots) -> Bench:
    """As a session has it whose editor does nothing for it and allows everything."""
    files = LocalFiles(roots)

    async def leave(_deed: Deed) -> Word:
        return Word(True)

    async def show(_call_id: str, _part: Shown) -> None:
        pass

    return Bench(roots, files, LocalCommands(), leave, show, files, Guard(roots))


if __name__ == "__main__":
    anyio.run(serve, Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
