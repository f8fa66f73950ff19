"""Tests the suite and the bench: requirements have tests, modules are distributed, and figures are written down."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from bench.claims import Verdict
from bench.page import section, write
from bench.platform.asking import Source, Way
from bench.platform.claims import platform_verdicts
from bench.platform.measure import PlatformMeasured
from hypothesis import settings

from tests.requirements import REQUIREMENTS
from tests.support.desk import ROOT, clean_environment
from tests.support.sharing import company

# Every requirement has a test that names it


NAMED = {
    name
    for path in ROOT.joinpath("tests").rglob("test_*.py")
    for name in re.findall(r'\bshows\("([A-Z0-9-]+)"\)', path.read_text())
}


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_a_requirement_has_a_test(requirement: str) -> None:
    assert requirement in NAMED


def test_tests_name_only_requirements_that_exist() -> None:
    assert set(REQUIREMENTS) >= NAMED


# Distribution of the suite among processes: tests that share a server stay together, also in random order


SECONDS = 60
MODULE = """
import os, pathlib, pytest

@pytest.mark.parametrize("number", range(6))
def test_it(number):
    with pathlib.Path({log!r}).open("a") as log:
        log.write(f"{{pathlib.Path(__file__).stem}} {{number}} {{os.environ['PYTEST_XDIST_WORKER']}}\\n")
"""


def test_a_module_is_run_by_one_process_and_a_seed_gives_the_same_order_again(tmp_path: Path) -> None:
    orders = [run(tmp_path, *arguments) for arguments in ((), ("--random=7",), ("--random=7",))]
    for order in orders:
        assert len(order) == 24
        assert len({(module, process) for module, _, process in order}) == 4
    plain, drawn, again = [numbers(order) for order in orders]
    assert plain == {name: list(map(str, range(6))) for name in plain}
    assert drawn == again != plain


def run(folder: Path, *arguments: str) -> list[list[str]]:
    log = folder / "log"
    log.unlink(missing_ok=True)
    for name in "abcd":
        (folder / f"test_{name}.py").write_text(MODULE.format(log=str(log)))
    sharing = ("-p", "tests.support.sharing", "-n", "2", "--dist", "loadscope", "--no-loadscope-reorder")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *sharing, *arguments, str(folder)],
        cwd=folder,
        env=clean_environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sched" not in done.stdout + done.stderr, "how they are shared out is nobody's news"
    assert ("--random 7" in done.stdout) == bool(arguments)
    return [line.split() for line in log.read_text().splitlines()]


def numbers(order: list[list[str]]) -> dict[str, list[str]]:
    """The tests that each module ran, in order; between two processes there is no order."""
    return {
        name: [number for module, number, _ in order if module == name] for name in sorted({one[0] for one in order})
    }


@pytest.mark.parametrize(
    ("nodeid", "together"),
    [
        ("tests/unit/test_identity.py::test_two_keys_are_never_alike", "tests/unit/test_identity.py"),
        ("tests/hosts/test_behaviour.py::test_it[letta-True]", "letta"),
        ("tests/hosts/test_behaviour.py::test_it[sqlite]", "tests/hosts/test_behaviour.py"),
        ("tests/hosts/test_letta_tools.py::test_it", "letta"),
        ("tests/hosts/test_letta_schedules.py::test_a_run_cannot_multiply_itself", "letta"),
        ("tests/unit/test_letta_stream.py::test_it", "tests/unit/test_letta_stream.py"),
        ("tests/scanners/test_credentials.py::test_it", "tests/scanners"),
        ("tests/e2e/test_docs.py::test_it[README.md]", "tests/e2e/test_docs.py::test_it[README.md]"),
    ],
)
def test_what_shares_a_server_is_run_together(nodeid: str, together: str) -> None:
    assert company(nodeid) == together


def test_property_tests_try_the_same_cases_each_time_unless_chance_is_asked_for(request: pytest.FixtureRequest) -> None:
    assert settings().derandomize is (request.config.getoption("random") is None)


# The page of figures that `./dev bench` writes


ORDER = ["calls", "turns"]


def test_a_part_that_was_measured_again_takes_its_old_place_and_leaves_the_others(tmp_path: Path) -> None:
    page = tmp_path / "measured.md"
    slow = Verdict("a call is quick", 2.0, 1.0, ())
    write({"turns": section("turns", "", [Verdict("a turn is quick", 0.5, 1.0, ())])}, ORDER, page)
    write({"calls": section("calls", "one  two", [slow])}, ORDER, page)
    write({"calls": section("calls", "three  four", [Verdict("a call is quick", 0.25, 1.0, ())])}, ORDER, page)
    text = page.read_text()
    assert text.startswith("# Measured\n")
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## calls", "## turns"]
    assert "three  four" in text
    assert "one  two" not in text
    assert "| a call is quick | 0.25 | 1 | yes |" in text
    assert "| a turn is quick | 0.50 | 1 | yes |" in text


def test_a_claim_that_does_not_hold_is_told_as_such() -> None:
    assert "| a call is quick | 2.00 | 1 | **no** |" in section("calls", "", [Verdict("a call is quick", 2.0, 1.0, ())])


# The noise of the platform client's bench: how much the same client differs from itself


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
