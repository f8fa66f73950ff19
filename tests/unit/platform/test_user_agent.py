"""How requests call themselves."""

import platform
import re
from importlib import metadata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.agent365 import Utility, agent_identity, get_user_agent_header
from frontdesk.agent365.agent_identity import _sdk_product
from tests.requirements import shows

FORM = re.compile(r"Agent365SDK/[!-~]+ \([^()\\]+; Python [0-9.a-z+]+(?:; ([ -~]+))?\)")


@pytest.fixture(autouse=True)
def unknown() -> None:
    _sdk_product.cache_clear()


def test_it_has_the_form_that_the_platform_knows() -> None:
    version = metadata.version("microsoft-agents-a365-runtime")
    start = f"Agent365SDK/{version} ({platform.system()}; Python {platform.python_version()}"
    assert get_user_agent_header() == get_user_agent_header("") == f"{start})"
    assert Utility.get_user_agent_header("OpenAI") == f"{start}; OpenAI)"


def test_without_the_sdk_the_version_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_identity, "SDK_PACKAGE", "no-such-package")
    assert get_user_agent_header().startswith("Agent365SDK/unknown (")
    _sdk_product.cache_clear()


@shows("A365-HOSTILE")
@given(st.text(st.characters()))
@settings(deadline=None)
def test_whatever_the_orchestrator_is_called_the_form_stays(name: str) -> None:
    found = FORM.fullmatch(get_user_agent_header(name))
    assert found
    assert len(found[1] or "") <= 256


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a)(b\\c", "abc"), ("naïve\r\nname", "naive name"), ("()", None), (" ", None), ("中", None), ("a ()", "a")],
)
def test_what_would_end_the_comment_is_left_out(name: str, shown: str | None) -> None:
    found = FORM.fullmatch(get_user_agent_header(name))
    assert found
    assert found[1] == shown
