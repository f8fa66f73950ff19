"""Every update that is built is one that the protocol has."""

from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path

import pytest

from frontdesk.loop.events import PlanStep, StepStatus
from frontdesk.surfaces.acp.convert import updates
from frontdesk.surfaces.acp.wire.model import Json
from frontdesk.workspace.permissions.model import Diff, Place
from tests.support.acp.schema import check_update

OPTION = {
    "type": "select",
    "id": "mode",
    "name": "Mode",
    "currentValue": "ask",
    "options": [{"value": "ask", "name": "Ask"}],
}
NEW = Diff(Path("/a"), None, "x")


@pytest.mark.parametrize(
    "update",
    [
        updates.user_chunk("m", updates.text("x")),
        updates.user_chunk("m", updates.media("image/png", b"x")),
        updates.agent_chunk("m", updates.media("audio/wav", b"x")),
        updates.thought_chunk("m", updates.text("")),
        updates.tool_call("c", "Read", kind="read", locations=[updates.location(Place(Path("/a"), 3))]),
        updates.tool_call_update("c", content=[updates.diff(NEW), updates.terminal("t")]),
        updates.tool_call_update("c", status="failed", content=[updates.content(updates.text("x"))]),
        updates.plan([PlanStep("a"), PlanStep("b", StepStatus.COMPLETED)]),
        updates.usage(10, 100),
        updates.usage(10, 100, 0.5),
        updates.commands([("help", "Say what there is", ""), ("remember", "Keep this", "what to keep")]),
        updates.current_mode("ask"),
        updates.config_options([OPTION]),
        updates.session_info("Title", datetime(2026, 1, 1, tzinfo=UTC)),
        updates.session_info(""),
        updates.notice("warning", "Slow"),
        updates.notice("error", "Gone", "Start it again"),
        updates.compaction("k", "They said hello"),
        updates.compaction("k", ""),
    ],
    ids=lambda update: str(update["sessionUpdate"]),
)
def test_an_update_is_as_the_protocol_has_it(update: Json) -> None:
    check_update(update)


def test_what_is_seen_and_heard_survives_the_way() -> None:
    block = updates.media("image/png", b"\0\xff")
    assert (block["type"], b64decode(block["data"])) == ("image", b"\0\xff")
    assert updates.media("audio/wav", b"x")["type"] == "audio"


def test_a_new_file_has_no_old_text_and_an_unknown_cost_is_not_told() -> None:
    assert updates.diff(NEW)["oldText"] is None
    assert "cost" not in updates.usage(1, 2)
    assert updates.usage(1, 2, 0.25)["cost"] == {"amount": 0.25, "currency": "USD"}
