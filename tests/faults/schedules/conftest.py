"""Fixtures of the scheduler's fault tests: the nursery, and an installation on either database."""

from collections.abc import Iterator

import pytest

from tests.support.schedules.processes import Nursery, open_nursery


@pytest.fixture(scope="package")
def nursery() -> Iterator[Nursery]:
    with open_nursery() as opened:
        yield opened
