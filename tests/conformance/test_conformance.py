"""Runs the protocol's own conformance suite against Frontdesk's MCP endpoint, in both eras."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.suite import run
from tests.requirements import shows
from tests.support.desk import Desk, open_desk

# These require a server to send its client a request during a call. A server that keeps nothing between requests
# cannot take the reply, and 2026-07-28 has removed the practice; the server can only refuse clearly.
NEED_A_SESSION = frozenset(
    {
        "tools-call-sampling",
        "tools-call-elicitation",
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
    }
)
# It warns that there is no session id, which the protocol leaves to the server, and checks nothing else.
CHECKS_NOTHING_WITHOUT_A_SESSION = frozenset({"server-sse-multiple-streams"})


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """one endpoint for both eras; clients of both use it."""
    data = tmp_path_factory.mktemp("conformance") / "data"
    with open_desk(data, command=(sys.executable, "-m", "tests.conformance")) as opened:
        yield opened


@shows("MCP-CONFORMANCE")
def test_every_scored_scenario_of_2026_07_28_passes(desk: Desk, tmp_path: Path) -> None:
    results = run(desk.mcp, "2026-07-28", tmp_path)
    assert len(results.scored & results.ran) >= 37, results.told()
    assert results.scored - results.passed == set(), results.told()
    # The checks that the suite does not score yet, such as those of headers, pass as well.
    assert results.failed == set(), results.told()


@shows("MCP-CONFORMANCE")
def test_every_check_of_2025_11_25_that_applies_passes(desk: Desk, tmp_path: Path) -> None:
    results = run(desk.mcp, "2025-11-25", tmp_path)
    assert len(results.scored & results.ran) >= 30, results.told()
    assert results.failed == NEED_A_SESSION, results.told()
    assert results.scored - results.passed - results.failed == CHECKS_NOTHING_WITHOUT_A_SESSION, results.told()
    assert all("no back-channel" in check.message for check in results.failures), results.told()
