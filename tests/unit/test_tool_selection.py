"""Tests the plan for an agent's tools, its execution, and the messages of `find_tools` about it."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import astuple, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.agents.host import AgentHost, HeldTool, ToolChange
from frontdesk.errors import NotFound, Unavailable
from frontdesk.search.evaluation import compute_ndcg, measure_ranking
from frontdesk.tools.agent_tools import NOT_IN_CATALOGUE_REASON, UNCONFIRMED_REASON, apply_plan, change_agent_tools
from frontdesk.tools.finder import ToolMatch, ToolSearchResults
from frontdesk.tools.model import CatalogueTool, ToolKind
from frontdesk.tools.responses import describe_found_tools
from frontdesk.tools.selection import (
    CurrentTool,
    SelectionPlan,
    SelectionResult,
    ToolCandidate,
    ToolChoice,
    ToolLimits,
    ToolRole,
    all_names,
    plan_pruning,
    plan_selection,
    role_of,
)
from frontdesk.tools.service import FindToolsResult

# The plan: few changes, within the limits, protected tools stay, each choice has a reason


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
    """The agent's tools after the plan."""
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


# The execution of a plan: what the host did, what it did not, and why, whatever happens to the host


TOOLS = {f"shop::{name}": HeldTool(f"shop__{name}", "", server="shop", remote_name=name) for name in "abc"}


def choice(name: str, score: float | None = None) -> ToolChoice:
    return ToolChoice(f"shop__{name}", f"shop::{name}", "because", score)


PLAN = SelectionPlan([choice("a", 90), choice("b", 80)], [choice("k")], [choice("x"), choice("y")], [choice("s", 10)])


@dataclass
class Desk:
    """An agent host with the functions for a change of tools; it does what the test says."""

    fails: Mapping[str, str] = field(default_factory=dict[str, str])
    forgets: frozenset[str] = frozenset()
    raises: Exception | None = None
    sleeps: bool = False
    asked: list[tuple[list[str], list[str]]] = field(default_factory=list[tuple[list[str], list[str]]])

    async def tools(self, _agent_id: str) -> Sequence[HeldTool]:
        return ()

    async def change_tools(self, _agent_id: str, attach: Sequence[HeldTool], detach: Sequence[str]) -> ToolChange:
        self.asked.append(([tool.name for tool in attach], list(detach)))
        if self.raises is not None:
            raise self.raises
        if self.sleeps:
            await anyio.sleep_forever()
        left_out = self.forgets | self.fails.keys()
        attached = [tool.name for tool in attach if tool.name not in left_out]
        return ToolChange(attached, [name for name in detach if name not in left_out], self.fails)

    @property
    def host(self) -> AgentHost:
        return cast("AgentHost", self)


async def done(desk: Desk, tools: Mapping[str, HeldTool] = TOOLS, seconds: float = 60) -> SelectionResult:
    return await apply_plan(desk.host, "agent-1", PLAN, tools, seconds=seconds)


async def test_what_was_planned_is_done_in_one_change_and_told() -> None:
    desk = Desk()
    selection = await done(desk)
    assert desk.asked == [(["shop__a", "shop__b"], ["shop__x", "shop__y"])]
    assert selection == SelectionResult(PLAN.attach, PLAN.keep, PLAN.detach, PLAN.skipped, [])


async def test_what_fails_is_told_beside_what_did_not() -> None:
    desk = Desk({"shop__b": "the server is down", "shop__x": "it is stuck"}, frozenset({"shop__y"}))
    selection = await done(desk)
    assert selection.attached == [choice("a", 90)]
    assert selection.detached == []
    assert [(one.id, one.reason, one.score) for one in selection.failed] == [
        ("shop::b", "could not be attached: the server is down", 80),
        ("shop::x", "could not be detached: it is stuck", None),
        ("shop::y", f"could not be detached: {UNCONFIRMED_REASON}", None),
    ]


async def test_a_tool_that_has_left_the_catalogue_is_not_asked_for() -> None:
    desk = Desk()
    selection = await done(desk, {"shop::a": TOOLS["shop::a"]})
    assert desk.asked[0][0] == ["shop__a"]
    assert [one.reason for one in selection.failed] == [f"could not be attached: {NOT_IN_CATALOGUE_REASON}"]


@pytest.mark.parametrize(
    ("desk", "why"),
    [
        (Desk(raises=Unavailable("http://inside:8283 is down", public="the host is down")), "the host is down"),
        (Desk(sleeps=True), "did not answer in 0 s"),
    ],
)
async def test_a_host_that_does_not_answer_costs_nothing_but_the_change(desk: Desk, why: str) -> None:
    selection = await done(desk, seconds=0.01)
    assert (selection.attached, selection.detached) == ([], [])
    assert len(selection.failed) == 4
    assert all(why in one.reason for one in selection.failed)


async def test_an_agent_that_is_not_there_is_an_error() -> None:
    with pytest.raises(NotFound):
        await done(Desk(raises=NotFound("gone")))


async def test_a_dry_run_asks_nothing_of_the_host_and_keeps_nobody_waiting() -> None:
    desk = Desk()

    async def decide(_held: Sequence[HeldTool]) -> SelectionPlan:
        return PLAN

    def turn_of(_agent_id: str) -> nullcontext[None]:
        raise AssertionError

    selection = await change_agent_tools(desk.host, "agent-1", decide, TOOLS, turn_of, dry_run=True)
    assert selection == SelectionResult(PLAN.attach, PLAN.keep, PLAN.detach, PLAN.skipped, dry_run=True)
    assert desk.asked == []


async def test_where_nothing_is_to_be_done_the_host_is_asked_for_nothing() -> None:
    desk = Desk()

    async def decide(_held: Sequence[HeldTool]) -> SelectionPlan:
        return SelectionPlan()

    assert await change_agent_tools(desk.host, "agent-1", decide, {}, nullcontext) == SelectionResult()
    assert desk.asked == []


async def test_what_was_decided_is_decided_again_once_it_is_our_turn() -> None:
    desk, recorded, plans = Desk(), list[SelectionResult](), iter([PLAN, SelectionPlan([choice("c", 70)])])

    async def decide(_held: Sequence[HeldTool]) -> SelectionPlan:
        return next(plans)

    async def record(selection: SelectionResult) -> None:
        recorded.append(selection)

    selection = await change_agent_tools(desk.host, "agent-1", decide, TOOLS, nullcontext, record=record)
    assert desk.asked == [(["shop__c"], [])]
    assert recorded == [selection]


async def test_a_caller_that_leaves_midway_leaves_nothing_unrecorded() -> None:
    recorded, leaving = list[SelectionResult](), anyio.CancelScope()

    class Slow(Desk):
        async def change_tools(self, agent_id: str, attach: Sequence[HeldTool], detach: Sequence[str]) -> ToolChange:
            leaving.cancel()
            await anyio.lowlevel.checkpoint()
            return await Desk.change_tools(self, agent_id, attach, detach)

    async def decide(_held: Sequence[HeldTool]) -> SelectionPlan:
        return PLAN

    async def record(selection: SelectionResult) -> None:
        recorded.append(selection)

    with leaving:
        await change_agent_tools(Slow().host, "agent-1", decide, TOOLS, nullcontext, record=record)
    assert [len(one.attached) for one in recorded] == [2]


# The messages of `find_tools`, and the figures of `tools bench`


def a_tool(name: str = "send", description: str = "Sends.", **more: Any) -> CatalogueTool:
    parameters = more.pop("parameters", {"type": "object"})
    return CatalogueTool(f"shop::{name}", "shop", name, description, parameters, **more)


def words(*findings: ToolMatch, selection: SelectionResult | None = None, searched: int = 5, **more: Any) -> str:
    found = ToolSearchResults(
        findings,
        searched,
        best=more.pop("best", None),
        by_meaning=more.pop("by_meaning", True),
        unread=more.pop("unread", 0),
    )
    outcomes = FindToolsResult(found, selection or SelectionResult(), servers=more.pop("servers", ()))
    return describe_found_tools(outcomes, **more)


def test_an_empty_catalogue_says_how_to_fill_it() -> None:
    assert "frontdesk tools add NAME URL" in words(searched=0, by_meaning=False)
    assert "Only words" not in words(searched=0, by_meaning=False)


def test_a_search_by_words_alone_says_so() -> None:
    assert "Only words were compared" in words(by_meaning=False)
    assert "40 new tools could be compared by words only" in words(unread=40)


def test_many_servers_are_cut_short() -> None:
    text = words(servers=[f"s{number}" for number in range(50)])
    assert "s29 and 20 more." in text
    assert "s30" not in text


def test_a_long_description_and_many_arguments_are_cut_short() -> None:
    many: dict[str, Any] = {"properties": {f"p{number}": {} for number in range(40)}, "required": ["p3"]}
    text = words(ToolMatch(a_tool(description="word " * 200, parameters=many), 80))
    assert "…" in text
    assert "Arguments: p3 (required), p0, p1" in text
    assert "p24 and 15 more" in text
    assert "p25" not in text


def test_a_tool_of_a_server_that_is_away_is_marked_and_one_of_the_host_is_not_to_be_called() -> None:
    text = words(ToolMatch(a_tool(stale=True), 80))
    assert "did not answer lately" in text
    host = CatalogueTool("host::archive", "host", "archive", "", {}, ToolKind.HOST)
    assert "call_tool" not in words(ToolMatch(host, 80))


def test_what_gave_way_what_was_left_and_what_failed_are_told_with_reasons() -> None:
    many = [ToolChoice(f"tool{number}", None, "made room") for number in range(20)]
    done = SelectionResult(
        attached=[ToolChoice("a", "shop::a", "scored 80")],
        kept=[ToolChoice("b", None, "wanted, and held already", 60), ToolChoice("c", None, "there is room")],
        detached=many,
        skipped=[ToolChoice("d", None, "no room")],
        failed=[ToolChoice("e", None, "the host refused")],
    )
    text = words(ToolMatch(a_tool(), 80), selection=done)
    assert "Attached: a (scored 80).\nHeld already: b.\nDetached: tool0 (made room)" in text
    assert "tool11 (made room) and 8 more." in text
    assert "Not attached: d (no room).\nFailed: e (the host refused)." in text
    assert "by your next turn" in text


@pytest.mark.parametrize("schema", [{}, {"properties": 5}, {"properties": {"a": {}}, "required": "a"}])
def test_a_strange_schema_has_no_needed_arguments(schema: dict[str, Any]) -> None:
    assert a_tool(parameters=schema).parameter_names[0] == []


def test_the_figures_are_the_usual_ones() -> None:
    assert compute_ndcg(["a", "b"], {"a", "b"}) == 1
    assert compute_ndcg(["x", "a"], {"a"}) == pytest.approx(0.6309, abs=1e-4)
    assert compute_ndcg([*"abcdefghij", "z"], {"z"}) == 0
    found = measure_ranking([(["a", "x"], {"a"}), (["x", "y", "b"], {"b", "c"}), ([], {"d"})])
    assert astuple(found) == pytest.approx(
        ((1 + 0.5 / (1 + 0.6309)) / 3, 1 / 3, 1 / 2, 1 / 2, (1 + 1 / 3) / 3), abs=1e-4
    )
