"""A prompt that was scheduled in a session comes about there by itself, while the editor has it open."""

from pathlib import Path

from tests.requirements import shows
from tests.support.acp.words import script, update_in
from tests.support.ready import Ready
from tests.surfaces.acp.showing import folder, introduced, said_in

pytestmark = shows("ACP-NEWS")


async def test_a_scheduled_prompt_is_answered_in_the_open_session(tmp_path: Path, ready: Ready) -> None:
    data, work = ready.in_folder(tmp_path / "data"), folder(tmp_path)
    async with introduced(data) as desk:
        client = desk.client
        session = await client.open_session(work)
        elsewhere = await client.open_session(folder(tmp_path, "elsewhere"))
        since = len(client.frames)
        # Escaped, so that the prompt cannot pass for its answer.
        wanted = script({"text": "The kettle boils"}).replace("kettle", r"\u006bettle")
        assert await client.prompt(session, f"/schedule in 1 second: {wanted}") == {"stopReason": "end_turn"}
        assert "Scheduled with number" in client.said(since=since)
        told = await client.until(lambda frame: "The kettle boils" in str(update_in(frame)), since=since)
        assert told.json["params"]["sessionId"] == session
        assert update_in(told)["sessionUpdate"] == "agent_message_chunk"
        assert "Scheduled prompt" in "".join(said_in(client, session, since=since).values())
        assert not [one for one in said_in(client, elsewhere, since=since).values() if "kettle" in one]
        # It is part of the conversation, and told once.
        await client.prompt(session, script({"text": "and on"}))
        since = len(client.frames)
        await client.request("session/load", {"sessionId": session, "cwd": str(work), "mcpServers": []})
        assert list(said_in(client, session, since=since).values()) == ["The kettle boils", "and on"]
        since = len(client.frames)
        await client.prompt(session, "/schedule")
        assert "kettle" not in client.said(since=since)
