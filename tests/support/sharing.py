"""Decides which tests one process runs together, and in what order: a plugin of the suite's `conftest.py`.

Tests that share a server run in one process; otherwise each process would start one. xdist has marks for that, but it
writes them into the names of the tests, which pytest 9.2 does not allow; so this goes by the names themselves.
"""

import random
from collections.abc import Sequence

import pytest
from hypothesis import settings
from typing_extensions import override
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

LETTA = "letta"
# Its cases run separately, as each takes long.
APART = ("tests/e2e/test_docs.py",)
TOGETHER = ("tests/scanners",)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--random", type=int, metavar="SEED", help="run the tests in an order of chance, the one of SEED")
    parser.addoption("--pictures", action="store_true", help="put the picture of the first page into the docs")


def pytest_configure(config: pytest.Config) -> None:
    """Property tests try the same cases each time, so that only a change fails; with `--random` they try new ones."""
    settings.register_profile("the same each time", derandomize=True)
    if config.getoption("random") is None:
        settings.load_profile("the same each time")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> "Companies":
    return Companies(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The slowest tests to start come first, unless the order is random."""
    seed: int | None = config.getoption("random")
    if seed is None:
        items.sort(key=lambda item: company(item.nodeid) != LETTA)
    else:
        items[:] = shuffled(items, random.Random(seed))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    seed: int | None = config.getoption("random")
    if seed is not None:
        terminalreporter.write_line(f"in the order of ./dev test --random {seed}")


def company(nodeid: str) -> str:
    """The name of the group of tests that run together with this one: usually its module's."""
    module = nodeid.partition("::")[0]
    if module.startswith("tests/hosts/") and LETTA in nodeid:
        return LETTA
    if module in APART:
        return nodeid
    return next((folder for folder in TOGETHER if module.startswith(f"{folder}/")), module)


def shuffled(items: Sequence[pytest.Item], chance: random.Random) -> list[pytest.Item]:
    companies: dict[str, list[pytest.Item]] = {}
    for item in items:
        companies.setdefault(company(item.nodeid), []).append(item)
    drawn = chance.sample(list(companies.values()), len(companies))
    return [item for together in drawn for item in chance.sample(together, len(together))]


class Companies(LoadScopeScheduling):
    """Gives whole groups, one after the other, to the next free process."""

    @override
    def _split_scope(self, nodeid: str) -> str:
        return company(nodeid)
