"""How the suite is shared out among processes: what shares a server stays together, also in an order of chance."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.desk import ROOT, clean_environment
from tests.support.sharing import company

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
    """What each module ran, in its order; between two processes there is none."""
    return {
        name: [number for module, number, _ in order if module == name] for name in sorted({one[0] for one in order})
    }


@pytest.mark.parametrize(
    ("nodeid", "together"),
    [
        ("tests/unit/test_keys.py::test_two_keys_are_never_alike", "tests/unit/test_keys.py"),
        ("tests/hosts/test_behaviour.py::test_it[letta-True]", "letta"),
        ("tests/hosts/test_behaviour.py::test_it[sqlite]", "tests/hosts/test_behaviour.py"),
        ("tests/hosts/test_letta_connect.py::test_it", "letta"),
        ("tests/hosts/test_schedule_itself.py::test_a_run_cannot_multiply_itself", "letta"),
        ("tests/unit/test_letta_stream.py::test_it", "tests/unit/test_letta_stream.py"),
        ("tests/referees/test_credentials.py::test_it", "tests/referees"),
        ("tests/e2e/test_docs.py::test_it[README.md]", "tests/e2e/test_docs.py::test_it[README.md]"),
    ],
)
def test_what_shares_a_server_is_run_together(nodeid: str, together: str) -> None:
    assert company(nodeid) == together


def test_property_tests_try_the_same_cases_each_time_unless_chance_is_asked_for(request: pytest.FixtureRequest) -> None:
    assert settings().derandomize is (request.config.getoption("random") is None)
