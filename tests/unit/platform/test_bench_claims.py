"""What the bench of the platform's client takes for noise: what the same client, asked once more, differs by."""

import pytest
from bench.platform.asking import Source, Way
from bench.platform.claims import platform_verdicts
from bench.platform.measure import PlatformMeasured


def measured(with_the_id: float, *again: float) -> PlatformMeasured:
    """Rounds of one request each, in which the client without the id takes a second."""
    of = {Way.WITHOUT: 1.0, Way.WITH: with_the_id, Way.KEPT: 0.4, Way.SDK: 1.1}
    rounds = {way: [[seconds] for _ in again] for way, seconds in of.items()} | {Way.AGAIN: [[one] for one in again]}
    return PlatformMeasured(dict.fromkeys(Source, rounds), 9, 1)


@pytest.mark.parametrize(
    ("with_the_id", "again", "holds"),
    [
        (1.02, (1.0, 1.001, 0.999), False),
        (1.02, (1.0, 1.03, 0.999), True),
        (1.02, (1.0, 0.97, 0.999), True),
        (1.009, (1.0, 1.0, 1.0), True),
        (0.9, (1.0, 1.0, 1.0), True),
    ],
)
def test_the_id_costs_something_where_it_costs_more_than_the_same_client_differs_from_itself(
    with_the_id: float, again: tuple[float, ...], holds: bool
) -> None:
    found = [verdict for verdict in platform_verdicts(measured(with_the_id, *again)) if "x-ms-agentid" in verdict.claim]
    assert [verdict.holds for verdict in found] == [holds] * len(Source)
