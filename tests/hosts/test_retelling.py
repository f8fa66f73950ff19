"""A turn that is over is told again, on every host as far as it keeps it."""

import pytest

from frontdesk.agents.turns.model import TurnQuery
from frontdesk.agents.turns.operations import AGENT_DELETED, list_turns, read_turn
from frontdesk.app import open_app
from frontdesk.identity.model import Caller
from frontdesk.llm.events import Started, TextChunk, ToolCall, ToolReturn, UserText
from tests.hosts.lab import Lab, client_tool, of_kind, script, take
from tests.requirements import shows

pytestmark = pytest.mark.anyio
OPERATOR = Caller("req-look", local=True, any_agent=True)


@shows("WEB-TURNS")
async def test_each_turn_is_told_with_what_was_said_in_it_and_nothing_else(lab: Lab) -> None:
    tool = client_tool("look", lambda _: "a cat")
    async with open_app(lab.settings) as app:
        agent = (await lab.agent(app.host)).id
        first = script({"tool": "look", "args": {"x": "1"}}, {"text": "It is a cat."})
        turns = [await take(app.host, agent, text, tools=[tool]) for text in (first, script({"text": "Good night."}))]
        ids = [of_kind(events, Started)[0].turn_id for events in turns]
        told = [await read_turn(app.host, app.turns, OPERATOR, one) for one in ids]
        events = [[one.event for one in account.said] for account in told]
        assert [len(of_kind(some, UserText)) for some in events] == [1, 1]
        assert [of_kind(some, TextChunk)[-1].text for some in events] == ["It is a cat.", "Good night."]
        assert of_kind(events[0], ToolCall)[0].arguments == {"x": "1"}
        assert "a cat" in of_kind(events[0], ToolReturn)[0].text
        assert (told[0].after, told[1].before, told[0].trouble) == (ids[1], ids[0], None)
        found = await app.turns.list(TurnQuery(agent_id=agent))
        assert [one.id for one in found] == ids[::-1]
        assert all(one.input_tokens > 0 for one in found)


@shows("WEB-TURNS")
async def test_a_turn_whose_agent_is_gone_is_told_without_words_where_it_is_kept_at_all(lab: Lab) -> None:
    async with open_app(lab.settings) as app:
        agent = (await lab.agent(app.host)).id
        await take(app.host, agent, "hello")
        await app.host.delete(agent)
        for record in await app.turns.list(TurnQuery(agent_id=agent)):
            told = await read_turn(app.host, app.turns, OPERATOR, record.id)
            assert (told.said, told.trouble) == ((), AGENT_DELETED)


@shows("WEB-TURNS")
async def test_turns_are_listed_also_while_the_server_behind_the_host_is_away(lab: Lab) -> None:
    async with open_app(lab.settings) as app:
        agent = (await lab.agent(app.host)).id
        one = of_kind(await take(app.host, agent, "hello"), Started)[0].turn_id
    async with open_app(lab.dead) as app:
        away = not app.host.features.keeps_turns
        found = await list_turns(app.host, app.turns, OPERATOR, TurnQuery(agent_id=agent))
        told = await read_turn(app.host, app.turns, OPERATOR, one)
        assert [turn.id for turn in found.turns] == [one]
        assert (bool(found.trouble), bool(told.trouble), bool(told.said)) == (away, away, not away)
