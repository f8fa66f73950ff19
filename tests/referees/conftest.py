"""The house that the referees visit: one for all of them, as none of them changes it."""

from collections.abc import Generator

import pytest

from tests.referees.house import House, open_house


@pytest.fixture(scope="package")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    with open_house(tmp_path_factory.mktemp("house") / "data") as opened:
        yield opened
