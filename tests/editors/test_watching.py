"""What the tests' own editor notices of an agent that does something wrong."""

import sys
from pathlib import Path

import pytest

from tests.support.acp import process
from tests.support.acp.client import editor
from tests.support.acp.words import Refused
from tests.support.desk import ROOT

RUDE_AGENT = ROOT / "tests" / "support" / "acp" / "rude_agent.py"
NOTICED = {
    "greeting": "Welcome",
    "unknown kind": "no such update",
    "wrong type": "content",
    "further key": "mood",
    "wrong answer": "protocolVersion",
    "two lines": "several lines",
    "uninvited": "does not offer",
    "twice": "an answer to nothing",
    "half a line": "left without an answer",
    "death": "left without an answer",
    "child": "left behind",
}


async def talk(data: Path, manner: str) -> str:
    """A whole conversation with an agent of these manners; what it said."""
    async with editor(data, command=(sys.executable, str(RUDE_AGENT), manner)) as client:
        await client.initialize()
        await client.prompt("s", "hello")
        with pytest.raises(Refused):
            await client.request("no/such")
    return client.said()


async def test_nothing_is_said_against_an_agent_that_does_nothing_wrong(tmp_path: Path) -> None:
    assert await talk(tmp_path / "data", "polite") == "hello"


@pytest.mark.parametrize("manner", NOTICED)
async def test_an_agent_that_does_something_wrong_fails_its_test(
    tmp_path: Path, manner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Shorter than what the agent leaves behind is there for.
    monkeypatch.setattr(process, "STOP_SECONDS", 1)
    with pytest.raises(AssertionError, match=NOTICED[manner]):
        await talk(tmp_path / "data", manner)
