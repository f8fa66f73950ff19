"""What of a turn is a word of the reply, and what is not."""

import pytest

from frontdesk.agents.chat.words import Ear, dump, load
from frontdesk.loop.events import Compacted, Event, Failed, ToolArguments, Trouble, Usage, UserMedia, UserText


@pytest.mark.parametrize(
    "event",
    [
        UserText("hello"),
        UserMedia("image/png", b"png"),
        ToolArguments("call-1", "tool", "{"),
        Compacted("about tea"),
        Failed(Trouble.TOO_LONG, "It no longer fits"),
    ],
)
def test_what_is_not_of_the_reply_is_no_word_of_it(event: Event) -> None:
    assert Ear().hear(event) is None


def test_what_a_turn_took_is_told_as_it_is_stored() -> None:
    usage = Usage(1, 2, 3, "m", 0.5, 40, 100)
    assert Ear().hear(usage) is usage
    assert load(dump([usage])) == [usage]
