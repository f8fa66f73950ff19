"""An agent that is deleted leaves no key behind, whatever fails on the way."""

from datetime import datetime

import pytest

from frontdesk.agents.host import NewAgent
from frontdesk.app import open_app
from frontdesk.errors import Unauthenticated, Unavailable
from frontdesk.identity.store import KeyStore
from frontdesk.interfaces.http.application import build_application
from frontdesk.settings import Settings
from tests.support.pages import browsing, text_of

pytestmark = pytest.mark.anyio


async def test_a_key_that_could_not_be_ended_is_ended_when_the_agent_is_deleted_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(_self: KeyStore, _key_id: str, _now: datetime) -> bool:
        raise Unavailable("The database does not answer")

    async with open_app(settings) as app, browsing(build_application(app)) as web:
        agent = await app.host.create(NewAgent("Ada"))
        key, text = await app.identity.create_key(name="laptop", agent_id=agent.id, user_id=None)
        _, others = await app.identity.create_key(name="other", agent_id="agent-other", user_id=None)
        with monkeypatch.context() as patched:
            patched.setattr(KeyStore, "revoke", away)
            await web.post(f"/agents/{agent.id}/delete", {}, 503)
        gone = text_of(await web.post(f"/agents/{agent.id}/delete"))
        assert f"Ada is deleted; its keys no longer work: {key.id}" in gone
        with pytest.raises(Unauthenticated):
            await app.identity.authenticate(text)
        assert (await app.identity.authenticate(others)).agent_id == "agent-other"
