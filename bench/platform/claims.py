"""The claims about the platform's client: the agent's id costs nothing that could be seen, and the SDK takes longer."""

from statistics import median

from bench.claims import Verdict
from bench.platform.asking import Source, Way
from bench.platform.measure import PlatformMeasured

# The same client held against itself differs by this much from one run to the next.
MOST_SLOWER = 1.05


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
    claim = f"x-ms-agentid from the {source} makes discovery no slower than without it (p50)"
    return Verdict(claim, median(found), MOST_SLOWER, found)


def _reads(measured: PlatformMeasured) -> Verdict:
    claim = f"the project's file is read once in {measured.requests:,} requests"
    return Verdict(claim, float(measured.reads), 1.0, ())


def _sdk(measured: PlatformMeasured, way: Way, claim: str, most: float = 1.0) -> Verdict:
    found = measured.ratios(Source.CLAIM, way, Way.SDK)
    return Verdict(f"the client {claim}" if way is Way.WITH else claim, median(found), most, found)
