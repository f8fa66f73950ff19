"""An editor that can do everything has it done through itself."""

import asyncio
from pathlib import Path

from tests.requirements import shows
from tests.support.acp.abilities import FILES, FORMS, TERMINALS, Files, filling, open_terminals
from tests.support.acp.client import editor
from tests.support.acp.schema import Json
from tests.support.acp.words import ALLOW, PERMISSION, outcome, script

LONG: Json = {"tool": "run_command", "args": {"command": "sleep 600 & sleep 600"}}


@shows("ACP-CODING")
async def test_files_terminals_and_forms_are_the_editors_where_it_has_them(work: Path, home: Path) -> None:
    files = Files({str(work / "old.txt"): "typed, not saved"})
    steps = (
        {"tool": "read_file", "args": {"path": "old.txt"}},
        {"tool": "write_file", "args": {"path": "new.txt", "content": "by the agent"}},
        {"tool": "run_command", "args": {"command": "echo $((6 * 7))"}},
        {"tool": "ask_person", "args": {"question": "Which colour?"}},
        {"text": "all done"},
    )
    async with open_terminals() as terminals:
        answers = {**files.answers, **terminals.answers, **filling(answer="blue"), PERMISSION: ALLOW}
        async with editor(home / "data", capabilities={**FILES, **TERMINALS, **FORMS}, answer=answers) as client:
            await client.initialize()
            session = await client.open_session(work)
            assert await client.prompt(session, script(*steps)) == {"stopReason": "end_turn"}
            told = str([update.get("rawOutput") for update in client.updates("tool_call_update")])
        assert all(word in told for word in ("typed, not saved", "42", "blue"))
        assert files.written == [str(work / "new.txt")]
        assert len(terminals.created) == 1


@shows("ACP-LEAKS")
async def test_a_terminal_that_opens_while_its_turn_is_cancelled_is_released(work: Path, home: Path) -> None:
    cancelled = asyncio.Event()
    async with open_terminals() as terminals:

        async def create_late(params: Json) -> Json:
            await cancelled.wait()
            return await terminals.create(params)

        answers = {**terminals.answers, "terminal/create": create_late, PERMISSION: ALLOW}
        async with editor(home / "data", capabilities=TERMINALS, answer=answers) as client:
            await client.initialize()
            session = await client.open_session(work)
            under_way = await client.begin(session, script(LONG, {"text": "never"}))
            await client.until(lambda frame: frame.method == "terminal/create")
            await client.notify("session/cancel", {"sessionId": session})
            cancelled.set()
            assert await outcome(under_way) == {"stopReason": "cancelled"}
            await client.until(lambda frame: frame.method == "terminal/release", seconds=10)


@shows("ACP-LEAKS")
async def test_a_terminal_at_work_is_released_when_its_turn_is_cancelled(work: Path, home: Path) -> None:
    async with open_terminals() as terminals:
        answers = {**terminals.answers, PERMISSION: ALLOW}
        async with editor(home / "data", capabilities=TERMINALS, answer=answers) as client:
            await client.initialize()
            session = await client.open_session(work)
            under_way = await client.begin(session, script(LONG, {"text": "never"}))
            await client.until(lambda frame: frame.method == "terminal/wait_for_exit")
            await client.notify("session/cancel", {"sessionId": session})
            assert await outcome(under_way) == {"stopReason": "cancelled"}
            assert terminals.open == {}
