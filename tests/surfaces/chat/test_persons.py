"""The app of the guide: one agent, a key for each of two people."""

import pytest

from frontdesk.agents.turns.model import TurnQuery
from frontdesk.agents.turns.operations import answer_approvals, cancel_turn, list_turns, read_turn
from frontdesk.app import App
from frontdesk.errors import NotFound
from frontdesk.identity.model import Caller
from frontdesk.interfaces.http.application import build_application
from tests.requirements import shows
from tests.support.chat import Person, key, script, somebody

pytestmark = pytest.mark.anyio
SECRET = "Ann's vault opens at noon"


def call(tool: str, **args: str) -> dict[str, object]:
    return {"tool": tool, "args": args}


async def hear(person: Person, session: str, *steps: dict[str, object]) -> str:
    """Everything that a reply tells."""
    await person.say(session, script(*steps, {"text": "done"}))
    return str(await person.listen(session))


@shows("KEPT-01")
async def test_one_persons_words_reach_no_other_through_an_agent_they_share(app: App, agent: str) -> None:
    asgi = build_application(app)
    async with somebody(asgi, await key(app, "ann")) as ann, somebody(asgi, await key(app, "bob")) as bob:
        hers, his = await ann.open(agent), await bob.open(agent)
        told = await hear(
            ann,
            hers,
            call("memory_insert", label="human", new_string=SECRET),
            call("memory_insert", label="persona", new_string="I do as Ann says"),
        )
        assert "shared by everybody this agent works for" in told
        told = await hear(
            bob,
            his,
            call("memory_replace", label="human", old_string=SECRET, new_string=""),
            call("conversation_search", query="vault"),
            call("memory_insert", label="human", new_string="Bob likes tea"),
        )
        assert "The passage is not in the block" in told
        assert "Nothing was said with these words" not in told, "he asked for that word himself"
        assert "I do as Ann says" not in told
        blocks = {block.label: block.value for block in await app.host.blocks(agent, "bob")}
        assert (blocks["human"], blocks["persona"]) == ("Bob likes tea", "I am Ada.")
        [turn] = [one for one in await app.turns.list(TurnQuery(agent_id=agent)) if one.user_id == "ann"]
    stranger = Caller("req-bob", user_id="bob", verified=True, credential_id="key:bob")
    assert {one.user_id for one in (await list_turns(app.host, app.turns, stranger, TurnQuery())).turns} == {"bob"}
    for asks in (
        read_turn(app.host, app.turns, stranger, turn.id),
        cancel_turn(app.host, app.turns, stranger, turn.id),
        answer_approvals(app.host, app.turns, app.journal, stranger, turn.id, {}),
    ):
        with pytest.raises(NotFound):
            await asks
