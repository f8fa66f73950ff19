"""The pages of agents, whichever host they live on."""

import pytest

from frontdesk.app import open_app
from frontdesk.interfaces.http.application import build_application
from tests.hosts.lab import Lab
from tests.requirements import shows
from tests.support.chat import script
from tests.support.pages import browsing, text_of

pytestmark = pytest.mark.anyio


@shows("WEB-AGENTS")
async def test_an_agent_of_either_host_is_made_shown_talked_with_edited_and_deleted(lab: Lab) -> None:
    async with open_app(lab.settings) as app, browsing(build_application(app)) as web:
        made = text_of(await web.post("/agents/new", {"name": "Grace", "model": lab.model or ""}))
        assert "Grace is made" in made
        [agent] = [agent for agent in await app.host.list(1000) if agent.name == "Grace"]
        assert await app.host.names({agent.id, "agent-of-nobody"}) == {agent.id: "Grace"}
        base = f"/agents/{agent.id}"
        said = await web.post(f"{base}/talk", {"text": script({"text": "A moth is in relay 70"})})
        assert "A moth is in relay 70" in text_of(said.split("@@")[-1])
        begun = await web.post(f"{base}/talk/new")
        assert "There are no messages yet" in begun
        page = await web.get(f"{base}/memory", block="human")
        seen = page.split('name="seen" value="')[1].split('"')[0]
        form = {"label": "human", "value": "Likes moths", "seen": seen}
        assert "Saved human" in text_of(await web.post(f"{base}/memory", form))
        assert "Likes moths" in text_of(await web.get(base))
        assert "Grace is deleted" in text_of(await web.post(f"{base}/delete"))
        await app.journal.flush()
        assert "The agent host has no agent of this id" in text_of(await web.get(base))
