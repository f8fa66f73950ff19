"""The installation that the referees visit: one for all of them, as none of them changes it."""

from collections.abc import Generator

import pytest

from tests.referees.house import Installation, open_installation


@pytest.fixture(scope="package")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Generator[Installation]:
    with open_installation(tmp_path_factory.mktemp("installation") / "data") as opened:
        yield opened
