"""Every requirement has a test that names it."""

import re

import pytest

from tests.requirements import REQUIREMENTS
from tests.support.desk import ROOT

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
