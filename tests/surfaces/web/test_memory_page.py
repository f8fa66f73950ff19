"""An agent's memory page compares no more than it shows."""

import pytest

from frontdesk.agents.embedded.store import VERSIONS
from frontdesk.agents.host import Block, NewAgent
from frontdesk.app import App
from frontdesk.surfaces.http import build
from frontdesk.surfaces.web.pages.agents import memory
from frontdesk.surfaces.web.pages.agents.diff import Piece, diff
from tests.support.pages import browsing

pytestmark = pytest.mark.anyio


async def test_only_the_changes_that_are_shown_are_compared(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def counted(before: str, after: str) -> list[Piece]:
        compared.append(after)
        return diff(before, after)

    monkeypatch.setattr(memory, "diff", counted)
    agent = await app.host.create(NewAgent("Ada", blocks=[Block("human", "0")]))
    for number in range(VERSIONS):
        await app.host.write_block(agent.id, "human", str(number + 1))
    async with browsing(build(app)) as web:
        page = await web.get(f"/agents/{agent.id}/memory", block="human")
        assert (len(compared), f"All {VERSIONS} changes" in page) == (memory.SHOWN, True)
        compared.clear()
        await web.get(f"/agents/{agent.id}/memory", block="human", all="1")
        assert len(compared) == VERSIONS
