"""Fixtures: an agent to chat with, and the person at this machine."""

from collections.abc import AsyncGenerator

import pytest

from frontdesk.agents.host import NewAgent
from frontdesk.app import App
from frontdesk.interfaces.http.application import build_application
from tests.support.chat import Person, somebody


@pytest.fixture
async def agent(app: App) -> str:
    return (await app.host.create(NewAgent("Ada"))).id


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages that wait behind another get their answer soon."""
    monkeypatch.setattr("frontdesk.agents.chat.replies.BEGIN_SECONDS", 0.05)


@pytest.fixture
async def local(app: App) -> AsyncGenerator[Person]:
    """The operator at this machine."""
    async with somebody(build_application(app)) as person:
        yield person
