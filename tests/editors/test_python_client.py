"""The client of the Python SDK with Frontdesk as its agent."""

from pathlib import Path

from acp.schema import ClientCapabilities, FileSystemCapabilities, TextContentBlock

from tests.requirements import shows
from tests.support.acp.sdk_client import sdk_editor
from tests.support.acp.words import script


def text(words: str) -> TextContentBlock:
    return TextContentBlock(type="text", text=words)


@shows("ACP-CLIENTS")
async def test_the_python_client_edits_a_file_and_loads_its_session(work: Path, home: Path) -> None:
    files = FileSystemCapabilities(read_text_file=True, write_text_file=True)
    async with sdk_editor(home / "data") as (agent, editor):
        told = await agent.initialize(protocol_version=1, client_capabilities=ClientCapabilities(fs=files))
        assert told.protocol_version == 1
        session = (await agent.new_session(cwd=str(work), mcp_servers=[])).session_id
        writing = {"tool": "write_file", "args": {"path": "new.txt", "content": "by the agent"}}
        answer = await agent.prompt(session_id=session, prompt=[text(script(writing, {"text": "all done"}))])
        assert answer.stop_reason == "end_turn"
        assert editor.said() == "all done"
        assert editor.written == {str(work / "new.txt"): "by the agent"}
        assert [call.kind for call in editor.permitted] == ["edit"]
        editor.told.clear()
        await agent.load_session(cwd=str(work), session_id=session, mcp_servers=[])
        assert editor.said() == "all done"
        assert [update.status for update in editor.updates("tool_call_update")][-1] == "completed"
