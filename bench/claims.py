"""The claims about the cost of a call, each decided by a ratio within one run."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.calls import SIZES, Case, Measured
from bench.processes import Kind
from bench.proxies.measure import ProxiesMeasured
from bench.proxies.ways import TOOLS, Way
from bench.turns import TurnsMeasured
from bench.wire import Era

MOST_FLOORS = 5.0
# "The same" within noise: the minimal server does equal work at both sizes, and still differs by a tenth from one
# round to the next. A cost per tool is visible anyway: a fifth of a microsecond for each of 1,000 is 200 µs a call.
MOST_GROWTH = 1.15
MOST_TURN_MS = 15.0
MOST_FIRST_MS = 5.0
# The memory that malloc keeps varies by a few percent; a kilobyte lost in each of 10,000 turns would be some 7 %.
MOST_MEMORY = 1.03
MOST_ADDED_MS = 1.2


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim, the measured value, and the largest value that the claim allows."""

    claim: str
    found: float
    most: float
    rounds: tuple[float, ...]

    @property
    def holds(self) -> bool:
        return self.found <= self.most


def verdicts(measured: Measured) -> list[Verdict]:
    return [*_against_floor(measured), *_against_fastmcp(measured), *_growth(measured)]


def turn_verdicts(measured: TurnsMeasured) -> list[Verdict]:
    """The claims about a turn, compared with the same request sent directly to the same model server, by turns."""
    whole = "a turn of a built-in agent takes at most 15 ms more than a direct call (p50)"
    first = "its first text comes at most 5 ms later (p50)"
    memory = f"{measured.watched:,} turns take no more memory than the first fifth of them"
    return [
        Verdict(whole, measured.overhead_ms("whole"), MOST_TURN_MS, ()),
        Verdict(first, measured.overhead_ms("first"), MOST_FIRST_MS, ()),
        Verdict(memory, measured.growth, MOST_MEMORY, ()),
    ]


def proxy_verdicts(measured: ProxiesMeasured) -> list[Verdict]:
    """The claims about a forwarded call, against the direct call and against what other proxies need to forward it."""
    ours = measured.added_us(Way.DESK)
    claim = (
        f"call_tool costs at most {MOST_ADDED_MS:g} ms of CPU more than a direct call, first quartile ({_tools(TOOLS)})"
    )
    added_ms = tuple(added / 1e3 for added in ours)
    half = measured.first_proxy_us(Way.MCP_PROXY)
    return [
        # A time is not a ratio: other load on the machine can only add to it, so the quieter rounds are more accurate.
        Verdict(claim, statistics.quantiles(added_ms, n=4)[0], MOST_ADDED_MS, added_ms),
        _less_added("mcp-proxy", ours, measured.added_us(Way.MCP_PROXY)),
        _less_added("the half of mcp-proxy alone that takes the call", ours, half),
        _less_added("ContextForge", ours, measured.added_us(Way.CONTEXTFORGE)),
    ]


def _less_added(other: str, ours: Sequence[float], theirs: Sequence[float]) -> Verdict:
    ratios = tuple(our / their for our, their in zip(ours, theirs, strict=True))
    return Verdict(f"call_tool adds less CPU to a call than {other}", statistics.median(ratios), 1.0, ratios)


def _against_floor(measured: Measured) -> Iterator[Verdict]:
    for era in Era:
        for tools in SIZES:
            claim = f"a call costs at most {MOST_FLOORS:g}x the Starlette floor ({era}, {_tools(tools)})"
            desk, floor = Case(Kind.DESK, tools, era), Case(Kind.FLOOR, tools, era)
            yield _verdict(measured, claim, desk, floor, MOST_FLOORS)


def _against_fastmcp(measured: Measured) -> Iterator[Verdict]:
    for era in Era:
        for tools in SIZES:
            claim = f"a call costs less than with FastMCP ({era}, {_tools(tools)})"
            desk, peer = Case(Kind.DESK, tools, era), Case(Kind.FASTMCP, tools, era)
            yield _verdict(measured, claim, desk, peer, 1.0)


def _growth(measured: Measured) -> Iterator[Verdict]:
    least, most = SIZES[0], SIZES[-1]
    for era in Era:
        claim = f"a call costs the same with {_tools(most)} as with {_tools(least)} ({era})"
        yield _verdict(measured, claim, Case(Kind.DESK, most, era), Case(Kind.DESK, least, era), MOST_GROWTH)


def _verdict(measured: Measured, claim: str, case: Case, other: Case, most: float) -> Verdict:
    return Verdict(claim, measured.ratio(case, other), most, tuple(measured.ratios(case, other)))


def _tools(count: int) -> str:
    return "1 tool" if count == 1 else f"{count:,} tools"
