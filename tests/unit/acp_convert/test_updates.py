"""Every update that is built is one that the protocol has."""

from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path

import pytest

from frontdesk.coding.model import FileDiff, FileLocation
from frontdesk.interfaces.acp import convert
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
        convert.user_chunk("m", convert.text_block("x")),
        convert.user_chunk("m", convert.media_block("image/png", b"x")),
        convert.agent_chunk("m", convert.media_block("audio/wav", b"x")),
        convert.thought_chunk("m", convert.text_block("")),
        convert.tool_call("c", "Read", kind="read", locations=[convert.call_location(FileLocation(Path("/a"), 3))]),
        convert.tool_call_update("c", content=[convert.call_diff(NEW), convert.call_terminal("t")]),
        convert.tool_call_update("c", status="failed", content=[convert.call_content(convert.text_block("x"))]),
        convert.plan_update([PlanStep("a"), PlanStep("b", StepStatus.COMPLETED)]),
        convert.usage_update(10, 100),
        convert.usage_update(10, 100, 0.5),
        convert.commands_update([("help", "Say what there is", ""), ("remember", "Keep this", "what to keep")]),
        convert.mode_update("ask"),
        convert.options_update([OPTION]),
        convert.session_info_update("Title", datetime(2026, 1, 1, tzinfo=UTC)),
        convert.session_info_update(""),
        convert.notice_update("warning", "Slow"),
        convert.notice_update("error", "Gone", "Start it again"),
        convert.compaction_update("k", "They said hello"),
        convert.compaction_update("k", ""),
    ],
    ids=lambda update: str(update["sessionUpdate"]),
)
def test_an_update_is_as_the_protocol_has_it(update: Json) -> None:
    check_update(update)


def test_what_is_seen_and_heard_survives_the_way() -> None:
    block = convert.media_block("image/png", b"\0\xff")
    assert (block["type"], b64decode(block["data"])) == ("image", b"\0\xff")
    assert convert.media_block("audio/wav", b"x")["type"] == "audio"


def test_a_new_file_has_no_old_text_and_an_unknown_cost_is_not_told() -> None:
    assert convert.call_diff(NEW)["oldText"] is None
    assert "cost" not in convert.usage_update(1, 2)
    assert convert.usage_update(1, 2, 0.25)["cost"] == {"amount": 0.25, "currency": "USD"}
