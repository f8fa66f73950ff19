"""Which tool a name means, of those that go by it and those that the caller may use."""

import pytest

from frontdesk.errors import Denied, Invalid, NotFound
from frontdesk.tools.access import AccessEffect, AccessRule, PermittedTools, find_similar_id, require_one_tool
from frontdesk.tools.model import CatalogueTool
from tests.requirements import shows

ONE, OTHER = (CatalogueTool(f"{server}::send", server, "send", "", {}) for server in ("mail", "post"))
EVERYTHING = PermittedTools()
NO_MAIL = PermittedTools([AccessRule("1", "*", AccessEffect.DENY, "mail::*")])


def test_it_is_the_only_one_that_the_caller_may_use() -> None:
    assert require_one_tool([ONE], EVERYTHING, "send") is ONE
    assert require_one_tool([ONE, OTHER], NO_MAIL, "send") is OTHER


def test_none_one_that_is_kept_from_the_caller_and_several_are_told_apart() -> None:
    with pytest.raises(NotFound, match="There is no tool 'send'"):
        require_one_tool([], EVERYTHING, "send")
    with pytest.raises(Denied, match="You may not use the tool 'send'"):
        require_one_tool([ONE], NO_MAIL, "send")
    with pytest.raises(Invalid, match="say which: mail::send, post::send"):
        require_one_tool([ONE, OTHER], EVERYTHING, "send")


def test_a_long_name_and_many_tools_are_cut_short() -> None:
    many = [CatalogueTool(f"s{number}::send", f"s{number}", "send", "", {}) for number in range(20)]
    with pytest.raises(Invalid) as refused:
        require_one_tool(many, EVERYTHING, "send" * 1000)
    assert len(str(refused.value)) < 400


@shows("KEPT-12")
def test_a_tool_that_is_gone_is_not_what_was_meant_by_its_own_name() -> None:
    known = ["mail::send", "mail::send_all"]
    assert find_similar_id(known, EVERYTHING, "mail::sent") == "mail::send"
    assert find_similar_id(known, EVERYTHING, "mail::send") == "mail::send_all"
    assert find_similar_id(known[:1], EVERYTHING, "mail::send") is None
