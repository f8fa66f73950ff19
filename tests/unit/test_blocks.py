"""What may stand in an agent's memory, whichever host keeps it."""

import pytest

from frontdesk.agents import blocks
from frontdesk.agents.host import Block
from frontdesk.errors import Invalid

LAW = Block("law", "never", read_only=True)


def test_an_agent_starts_with_the_usual_blocks_unless_its_own_stand_there() -> None:
    human = Block("human", "Likes tea")
    assert [block.label for block in blocks.starting("Ada", [])] == ["persona", "human"]
    assert blocks.starting("Ada", [LAW, human])[1:] == [LAW, human]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([Block("", "")], "1 to 100 characters"),
        ([Block("x" * 101, "")], "1 to 100 characters"),
        ([Block("a", ""), Block("a", "")], "same label"),
        ([Block("a", "xx", limit=1)], "takes 1 characters; this is 2"),
        ([Block("a\0", "")], "cannot be stored"),
        ([Block("a", "\ud800")], "cannot be stored"),
        ([Block("a", "", "\0")], "cannot be stored"),
        ([Block(str(number), "") for number in range(49)], "at most 50"),
    ],
)
def test_blocks_that_cannot_be_are_refused_with_the_reason(given: list[Block], why: str) -> None:
    with pytest.raises(Invalid, match=why):
        blocks.starting("Ada", given)


def test_a_change_is_made_by_the_rules_of_the_block() -> None:
    block = Block("human", "tea", "Who", limit=5)
    assert blocks.changed(block, lambda value: f"{value}\0s") == Block("human", "teas", "Who", limit=5)
    with pytest.raises(Invalid, match="The memory block 'human' takes 5 characters; this is 6"):
        blocks.changed(block, lambda value: value * 2)


def test_a_block_that_is_read_only_is_not_even_tried() -> None:
    with pytest.raises(Invalid, match="The memory block 'law' is read-only; write to another one"):
        blocks.changed(LAW, lambda _value: pytest.fail("tried"))
