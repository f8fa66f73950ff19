"""Every update that is built is one that the protocol has."""

from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path

import pytest

from frontdesk.coding.model import FileDiff, FileLocation
from frontdesk.interfaces.acp import updates
from frontdesk.interfaces.acp.jsonrpc import Json
from frontdesk.llm.events import PlanStep, StepStatus
from tests.support.acp.schema import check_update

OPTION = {
    "type": "select",
    "id": "mode",
    "name": "Mode",
    "currentValue": "ask",
    "options": [{"value": "ask", "name": "Ask"}],
}
NEW = FileDiff(Path("/a"), None, "x")


@pytest.mark.parametrize(
    "update",
    [
        updates.user_chunk("m", updates.text_block("x")),
        updates.user_chunk("m", updates.media_block("image/png", b"x")),
        updates.agent_chunk("m", updates.media_block("audio/wav", b"x")),
        updates.thought_chunk("m", updates.text_block("")),
        updates.tool_call("c", "Read", kind="read", locations=[updates.call_location(FileLocation(Path("/a"), 3))]),
        updates.tool_call_update("c", content=[updates.call_diff(NEW), updates.call_terminal("t")]),
        updates.tool_call_update("c", status="failed", content=[updates.call_content(updates.text_block("x"))]),
        updates.plan_update([PlanStep("a"), PlanStep("b", StepStatus.COMPLETED)]),
        updates.usage_update(10, 100),
        updates.usage_update(10, 100, 0.5),
        updates.commands_update([("help", "Say what there is", ""), ("remember", "Keep this", "what to keep")]),
        updates.mode_update("ask"),
        updates.options_update([OPTION]),
        updates.session_info_update("Title", datetime(2026, 1, 1, tzinfo=UTC)),
        updates.session_info_update(""),
        updates.notice_update("warning", "Slow"),
        updates.notice_update("error", "Gone", "Start it again"),
        updates.compaction_update("k", "They said hello"),
        updates.compaction_update("k", ""),
    ],
    ids=lambda update: str(update["sessionUpdate"]),
)
def test_an_update_is_as_the_protocol_has_it(update: Json) -> None:
    check_update(update)


def test_what_is_seen_and_heard_survives_the_way() -> None:
    block = updates.media_block("image/png", b"\0\xff")
    assert (block["type"], b64decode(block["data"])) == ("image", b"\0\xff")
    assert updates.media_block("audio/wav", b"x")["type"] == "audio"


def test_a_new_file_has_no_old_text_and_an_unknown_cost_is_not_told() -> None:
    assert updates.call_diff(NEW)["oldText"] is None
    assert "cost" not in updates.usage_update(1, 2)
    assert updates.usage_update(1, 2, 0.25)["cost"] == {"amount": 0.25, "currency": "USD"}
