"""What may stand in an agent's memory, whichever host keeps it."""

import pytest

from frontdesk.agents.host import MemoryBlock
from frontdesk.agents.memory_blocks import change_block, initial_blocks
from frontdesk.errors import Invalid

LAW = MemoryBlock("law", "never", read_only=True)


def test_an_agent_starts_with_the_usual_blocks_unless_its_own_stand_there() -> None:
    human = MemoryBlock("human", "Likes tea")
    assert [block.label for block in initial_blocks("Ada", [])] == ["persona", "human"]
    assert initial_blocks("Ada", [LAW, human])[1:] == [LAW, human]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([MemoryBlock("", "")], "1 to 100 characters"),
        ([MemoryBlock("x" * 101, "")], "1 to 100 characters"),
        ([MemoryBlock("a", ""), MemoryBlock("a", "")], "same label"),
        ([MemoryBlock("a", "xx", limit=1)], "takes 1 characters; this is 2"),
        ([MemoryBlock("a\0", "")], "cannot be stored"),
        ([MemoryBlock("a", "\ud800")], "cannot be stored"),
        ([MemoryBlock("a", "", "\0")], "cannot be stored"),
        ([MemoryBlock(str(number), "") for number in range(49)], "at most 50"),
    ],
)
def test_blocks_that_cannot_be_are_refused_with_the_reason(given: list[MemoryBlock], why: str) -> None:
    with pytest.raises(Invalid, match=why):
        initial_blocks("Ada", given)


def test_a_change_is_made_by_the_rules_of_the_block() -> None:
    block = MemoryBlock("human", "tea", "Who", limit=5)
    assert change_block(block, lambda value: f"{value}\0s") == MemoryBlock("human", "teas", "Who", limit=5)
    with pytest.raises(Invalid, match="The memory block 'human' takes 5 characters; this is 6"):
        change_block(block, lambda value: value * 2)


def test_a_block_that_is_read_only_is_not_even_tried() -> None:
    with pytest.raises(Invalid, match="The memory block 'law' is read-only; write to another one"):
        change_block(LAW, lambda _value: pytest.fail("tried"))
