"""An agent's memory page compares no more than it shows."""

import pytest

from frontdesk.agents.embedded.store import KEPT_VERSIONS
from frontdesk.agents.host import MemoryBlock, NewAgent
from frontdesk.app import App
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.web.pages import agents
from frontdesk.interfaces.web.pages.agents import SHOWN_CHANGES
from frontdesk.interfaces.web.text_diff import ChangedWords, diff_words
from tests.support.pages import browsing

pytestmark = pytest.mark.anyio


async def test_only_the_changes_that_are_shown_are_compared(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def counted(before: str, after: str) -> list[ChangedWords]:
        compared.append(after)
        return diff_words(before, after)

    monkeypatch.setattr(agents, "diff_words", counted)
    agent = await app.host.create(NewAgent("Ada", blocks=[MemoryBlock("human", "0")]))
    for number in range(KEPT_VERSIONS):
        await app.host.write_block(agent.id, "human", str(number + 1))
    async with browsing(build_application(app)) as web:
        page = await web.get(f"/agents/{agent.id}/memory", block="human")
        assert (len(compared), f"All {KEPT_VERSIONS} changes" in page) == (SHOWN_CHANGES, True)
        compared.clear()
        await web.get(f"/agents/{agent.id}/memory", block="human", all="1")
        assert len(compared) == KEPT_VERSIONS
