"""The claims about the platform's client: the agent's id has no measurable cost, and the SDK takes longer."""

from statistics import median

from bench.claims import Verdict
from bench.platform.asking import Source, Way
from bench.platform.measure import PlatformMeasured

# A run cannot distinguish less than a hundredth, some 5 µs of a discovery: in most runs, a round of the client against
# itself is that far from 1. If it is farther in this run, the limit of what can be distinguished is farther too.
RESOLUTION = 0.01


def platform_verdicts(measured: PlatformMeasured) -> list[Verdict]:
    return [
        *(_header(measured, source) for source in Source),
        _reads(measured),
        _sdk(measured, Way.WITH, "asks no slower than the SDK 2.0.0 (p50)"),
        _sdk(
            measured, Way.KEPT, "with connections kept it asks in less than half the time of the SDK 2.0.0 (p50)", 0.5
        ),
    ]


def _header(measured: PlatformMeasured, source: Source) -> Verdict:
    found = measured.ratios(source, Way.WITH, Way.WITHOUT)
    claim = f"x-ms-agentid from the {source} makes discovery no slower than without it, within noise (p50)"
    return Verdict(claim, median(found), round(1 + max(RESOLUTION, _noise(measured, source)), 3), found)


def _noise(measured: PlatformMeasured, source: Source) -> float:
    """The client's ratio to itself, in the round where it is farthest from 1."""
    return max(abs(ratio - 1) for ratio in measured.ratios(source, Way.AGAIN, Way.WITHOUT))


def _reads(measured: PlatformMeasured) -> Verdict:
    claim = f"the project's file is read once in {measured.requests:,} requests"
    return Verdict(claim, float(measured.reads), 1.0, ())


def _sdk(measured: PlatformMeasured, way: Way, claim: str, most: float = 1.0) -> Verdict:
    found = measured.ratios(Source.CLAIM, way, Way.SDK)
    return Verdict(f"the client {claim}" if way is Way.WITH else claim, median(found), most, found)
