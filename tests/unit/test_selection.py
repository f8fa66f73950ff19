"""The plan for an agent's tools: little changes, the limits hold, what is protected stays, each choice has a why."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.tools.selection import (
    CurrentTool,
    SelectionPlan,
    ToolCandidate,
    ToolChoice,
    ToolLimits,
    ToolRole,
    all_names,
    plan_pruning,
    plan_selection,
    role_of,
)

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
ROLES = st.sampled_from([ToolRole.MCP, ToolRole.MCP, ToolRole.MCP, *ToolRole])
NUMBERS = st.integers(0, 14)


@dataclass(frozen=True)
class Case:
    held: list[CurrentTool]
    matches: list[ToolCandidate]
    limits: ToolLimits
    keep: list[str]
    min_score: float

    def planned(self, held: list[CurrentTool] | None = None) -> SelectionPlan:
        held = self.held if held is None else held
        return plan_selection(held, self.matches, self.limits, keep=self.keep, min_score=self.min_score)


def tool(
    number: int,
    role: ToolRole = ToolRole.MCP,
    used_days_ago: int | None = None,
    *,
    protected: bool = False,
    value: float = 0.0,
) -> CurrentTool:
    name, found = f"shop__tool_{number}", f"shop::tool_{number}"
    used = None if used_days_ago is None else NOW - timedelta(days=used_days_ago)
    return CurrentTool(name, found, role, NOW - timedelta(days=30), used, protected, value=value)


def match(number: int, score: float = 80, role: ToolRole = ToolRole.MCP) -> ToolCandidate:
    return ToolCandidate(f"shop::tool_{number}", f"shop__tool_{number}", score, role)


def names(choices: Iterable[ToolChoice]) -> list[str]:
    return [choice.name.removeprefix("shop__tool_") for choice in choices]


def after(held: list[CurrentTool], done: SelectionPlan, roles: dict[str, ToolRole]) -> list[CurrentTool]:
    """What the agent holds once the plan is carried out."""
    gone = {choice.name for choice in done.detach}
    new = [CurrentTool(one.name, one.id, roles[one.id or ""], NOW, None) for one in done.attach]
    return [one for one in held if one.name not in gone] + new


def mcp(held: Iterable[CurrentTool]) -> int:
    return sum(one.role is ToolRole.MCP for one in held)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    roles = [draw(ROLES) for _ in range(15)]
    held = [
        tool(number, roles[number], draw(st.none() | st.integers(0, 5)), protected=draw(st.integers(0, 5)) == 0)
        for number in draw(st.lists(NUMBERS, unique=True))
    ]
    matches = [match(number, draw(st.integers(0, 100)), roles[number]) for number in draw(st.lists(NUMBERS))]
    limits = ToolLimits(
        max_total=draw(st.integers(0, 12)),
        max_mcp=draw(st.integers(0, 12)),
        min_mcp=draw(st.integers(0, 6)),
        drop_rate=draw(st.sampled_from([0, 0.25, 0.6, 1.0])),
        never_detach=frozenset(f"shop::tool_{number}" for number in draw(st.lists(NUMBERS, max_size=3))),
        manage_only_mcp=draw(st.booleans()),
        exclude_core=draw(st.booleans()),
        exclude_official=draw(st.booleans()),
    )
    keep = [f"shop__tool_{number}" for number in draw(st.lists(NUMBERS, max_size=3))]
    return Case(held, matches, limits, keep, draw(st.sampled_from([0, 50, 80])))


@given(cases())
@settings(max_examples=300, deadline=None)
def test_a_plan_keeps_the_limits_and_what_is_protected(case: Case) -> None:
    made = case.planned()
    limits, roles = case.limits, {one.id: one.role for one in case.matches}
    attached, detached = {one.id for one in made.attach}, {one.id for one in made.detach}
    had = {one.id for one in case.held}
    left = after(case.held, made, roles)
    assert len(attached) == len(made.attach), "nothing is attached twice"
    assert not attached & had
    assert detached <= had
    assert {one.id for one in made.keep} == had - detached
    if made.attach:
        assert len(left) <= limits.max_total
        assert not any(roles[one.id or ""] is ToolRole.MCP for one in made.attach) or mcp(left) <= limits.max_mcp
    else:
        assert not made.detach, "nothing goes unless something comes"
    assert mcp(left) >= min(mcp(case.held), limits.min_mcp, limits.max_mcp)
    for one in case.held:
        if one.id in detached:
            assert one.role is not ToolRole.CORE
            assert not one.protected
            assert one.id not in limits.never_detach
            assert one.name not in case.keep
            assert one.role is ToolRole.MCP or not limits.manage_only_mcp
    wanted = {one.id for one in case.matches if one.score >= case.min_score}
    assert attached <= wanted
    assert not detached & wanted - {one.id for one in case.matches if one.score < case.min_score}
    assert all(choice.reason for part in (made.attach, made.keep, made.detach, made.skipped) for choice in part)
    told = attached | had | {one.id for one in made.skipped}
    assert {one.id for one in case.matches} <= told, "each match is accounted for"


@given(cases())
@settings(max_examples=300, deadline=None)
def test_planning_again_after_a_plan_is_carried_out_changes_nothing(case: Case) -> None:
    made = case.planned()
    assert made == case.planned(), "the same is decided twice"
    again = case.planned(after(case.held, made, {one.id: one.role for one in case.matches}))
    assert not again.changes


@settings(deadline=None)
@given(cases(), st.dictionaries(NUMBERS.map(lambda number: f"shop::tool_{number}"), st.floats(0, 100)), st.floats(0, 1))
def test_pruning_never_goes_below_the_least_nor_touches_what_is_protected(
    case: Case, scores: dict[str, float], rate: float
) -> None:
    made = plan_pruning(case.held, scores, case.limits, keep=case.keep, drop_rate=rate)
    gone = {one.id for one in made.detach}
    had = mcp(case.held)
    assert not made.attach
    assert had - len(gone) >= min(had, case.limits.min_mcp)
    assert len(gone) <= rate * had + 1e-6
    for one in case.held:
        if one.id in gone:
            assert one.role is ToolRole.MCP
            assert not one.protected
            assert one.id not in case.limits.never_detach
            assert one.name not in case.keep


def test_tools_are_added_while_there_is_room() -> None:
    made = plan_selection([tool(0), tool(1)], [match(1), match(2), match(3, 20)], ToolLimits())
    assert names(made.attach) == ["2"]
    assert names(made.keep) == ["1", "0"]
    assert made.detach == []
    assert [choice.reason for choice in made.attach] == ["scored 80"]
    assert [choice.reason for choice in made.keep] == ["wanted, and held already", "there is room"]
    assert [choice.reason for choice in made.skipped] == ["scored 20, below 50"]


def test_nothing_changes_when_all_that_is_wanted_is_held_even_above_the_limits() -> None:
    held = [tool(number) for number in range(50)]
    assert not plan_selection(held, [match(number) for number in range(25)], ToolLimits()).changes


def test_at_the_limit_a_share_of_the_least_recently_used_goes_at_once() -> None:
    held = [tool(number, used_days_ago=number) for number in range(20)]
    made = plan_selection(held, [match(77)], ToolLimits())
    assert names(made.attach) == ["77"]
    assert names(made.detach) == [str(number) for number in range(19, 7, -1)]
    assert made.detach[0].reason == "made room for others: last used 2026-10-28 12:00 UTC"
    kept = [one for one in held if one.name in {choice.name for choice in made.keep}]
    for number in range(80, 91):
        assert not plan_selection([*kept, tool(77)], [match(number)], ToolLimits()).detach, (
            "the next finds need no such change"
        )


def test_of_tools_used_at_the_same_time_the_least_worth_goes_first() -> None:
    held = [tool(number, value=float(10 - number)) for number in range(3)]
    made = plan_selection(held, [match(9)], ToolLimits(max_mcp=3, min_mcp=0, drop_rate=0))
    assert names(made.detach) == ["2"]


def test_even_a_drop_rate_of_one_leaves_the_least_number_of_tools() -> None:
    held = [tool(number) for number in range(20)]
    made = plan_selection(held, [match(77)], ToolLimits(drop_rate=1))
    assert len(made.keep) + len(made.attach) == 7


def test_what_finds_no_room_is_said_with_the_reason() -> None:
    held = [tool(number, protected=True) for number in range(20)]
    made = plan_selection(held, [match(77)], ToolLimits())
    assert not made.changes
    [skipped] = made.skipped
    assert skipped.reason == "no room: 20 tools of MCP servers are the most, and none of those it has may go"
    crowd = [tool(number, ToolRole.CORE) for number in range(30)]
    [skipped] = plan_selection(crowd, [match(77)], ToolLimits()).skipped
    assert skipped.reason == "no room: 30 tools are the most, and none of those it has may go"


def test_more_winners_than_room_are_taken_in_their_order() -> None:
    held = [tool(number) for number in range(100, 120)]
    made = plan_selection(held, [match(number) for number in range(25)], ToolLimits())
    assert names(made.attach) == [str(number) for number in range(20)]
    assert len(made.detach) == 20
    assert names(made.skipped) == [str(number) for number in range(20, 25)]


@pytest.mark.parametrize("word", ["shop::read", "shop__read", "read", "precious"])
def test_protection_goes_by_an_exact_name_id_or_tag(word: str) -> None:
    read = CurrentTool("shop__read", "shop::read", tags=frozenset({"precious"}))
    thread = CurrentTool("shop__thread_read", "shop::thread_read")
    limits = ToolLimits(max_mcp=2, min_mcp=0, drop_rate=1, never_detach=frozenset({word}))
    assert [one.id for one in plan_selection([read, thread], [match(1)], limits).detach] == ["shop::thread_read"]
    assert [one.id for one in plan_pruning([read, thread], {}, limits, drop_rate=1).detach] == ["shop::thread_read"]


@pytest.mark.parametrize("word", ["shop::tool_0", "shop__tool_0", "tool_0"])
def test_keep_tools_takes_ids_and_names(word: str) -> None:
    limits = ToolLimits(max_mcp=1, min_mcp=0)
    assert plan_selection([tool(0)], [match(1)], limits, keep=[word]).detach == []
    assert names(plan_selection([tool(0)], [match(1)], limits, keep=["ool_0"]).detach) == ["0"]


def test_a_name_that_the_agent_knows_otherwise_is_not_taken_over() -> None:
    held = [CurrentTool("search", "web::search"), CurrentTool("read")]
    found = [ToolCandidate("shop::search", "search", 90), ToolCandidate("shop::read", "read", 90)]
    made = plan_selection(held, found, ToolLimits())
    assert not made.changes
    assert [choice.reason for choice in made.skipped] == ["the agent has another tool of this name"]
    assert [choice.reason for choice in made.keep] == ["wanted, and held already", "there is room"]


@pytest.mark.parametrize(
    ("role", "limits"),
    [
        (ToolRole.HOST, ToolLimits(manage_only_mcp=True)),
        (ToolRole.OFFICIAL, ToolLimits(exclude_official=True)),
        (ToolRole.CORE, ToolLimits(exclude_core=True)),
    ],
)
def test_kinds_that_are_left_out_are_neither_attached_nor_detached(role: ToolRole, limits: ToolLimits) -> None:
    made = plan_selection([], [match(1, role=role)], limits)
    assert [choice.reason for choice in made.skipped] == [f"tools of this kind ({role}) are not handed out here"]
    full = ToolLimits(1, 1, 0, 1.0, frozenset(), limits.manage_only_mcp, limits.exclude_core, limits.exclude_official)
    assert plan_selection([tool(0, role)], [match(1)], full).detach == []
    assert names(plan_selection([tool(0)], [match(1)], full).detach) == ["0"]


def test_pruning_gives_up_what_fits_least() -> None:
    held = [tool(number) for number in range(10)]
    scores = {f"shop::tool_{number}": number * 10.0 for number in range(9)}
    made = plan_pruning(held, scores, ToolLimits(min_mcp=3), keep=["tool_0"])
    assert names(made.detach) == ["9", "1", "2", "3", "4", "5"]
    assert len(plan_pruning(held, scores, ToolLimits()).detach) == 3, "seven are the least"


def test_a_tool_is_known_by_its_id_its_own_name_and_the_one_the_model_sees() -> None:
    assert all_names("a__b", "a::b") == {"a__b", "a::b", "b"}
    assert all_names("a__b", "a::b::c") == {"a__b", "a::b::c", "b::c"}
    assert all_names("plain", None) == {"plain"}


def test_the_hosts_own_tools_are_told_by_their_exact_names() -> None:
    assert role_of("send_message", None) is ToolRole.CORE
    assert role_of("web_search", None) is ToolRole.OFFICIAL
    assert role_of("my_send_message", None) is ToolRole.HOST
    assert role_of("send_message", "shop") is ToolRole.MCP
