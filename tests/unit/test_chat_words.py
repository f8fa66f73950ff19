"""What of a turn is a word of the reply, and what is not."""

import pytest

from frontdesk.agents.chat.model import ReplyBuilder, dump_reply_events, load_reply_events
from frontdesk.llm.events import Compacted, Event, Failed, FailureKind, ToolArguments, Usage, UserMedia, UserText


@pytest.mark.parametrize(
    "event",
    [
        UserText("hello"),
        UserMedia("image/png", b"png"),
        ToolArguments("call-1", "tool", "{"),
        Compacted("about tea"),
        Failed(FailureKind.TOO_LONG, "It no longer fits"),
    ],
)
def test_what_is_not_of_the_reply_is_no_word_of_it(event: Event) -> None:
    assert ReplyBuilder().add_event(event) is None


def test_what_a_turn_took_is_told_as_it_is_stored() -> None:
    usage = Usage(1, 2, 3, "m", 0.5, 40, 100)
    assert ReplyBuilder().add_event(usage) is usage
    assert load_reply_events(dump_reply_events([usage])) == [usage]
