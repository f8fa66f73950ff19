"""A plan carried out: what the host did, what it did not, and why, whatever becomes of the host."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import cast

import anyio
import pytest

from frontdesk.agents.host import AgentHost, HeldTool, ToolChange
from frontdesk.errors import NotFound, Unavailable
from frontdesk.tools.agent_tools import NOT_IN_CATALOGUE_REASON, UNCONFIRMED_REASON, apply_plan, change_agent_tools
from frontdesk.tools.selection import SelectionPlan, SelectionResult, ToolChoice

pytestmark = pytest.mark.anyio
TOOLS = {f"shop::{name}": HeldTool(f"shop__{name}", "", server="shop", remote_name=name) for name in "abc"}


def choice(name: str, score: float | None = None) -> ToolChoice:
    return ToolChoice(f"shop__{name}", f"shop::{name}", "because", score)


PLAN = SelectionPlan([choice("a", 90), choice("b", 80)], [choice("k")], [choice("x"), choice("y")], [choice("s", 10)])


@dataclass
class Desk:
    """An agent host as far as a change of tools needs it; it does what the test says."""

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
