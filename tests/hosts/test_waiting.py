"""What waits for somebody's word is listed as such, until the word is given or what waits is given up."""

import pytest

from frontdesk.agents.host import Approval
from frontdesk.agents.turns.model import TurnQuery
from frontdesk.agents.turns.operations import cancel_turn
from frontdesk.app import App, open_app
from frontdesk.identity.model import Caller
from frontdesk.llm.events import ApprovalRequest, Started
from tests.hosts.lab import Lab, client_tool, of_kind, script, take

pytestmark = pytest.mark.anyio
OPERATOR = Caller("req-look", local=True, any_agent=True)
BUY = client_tool("buy", lambda _: "bought", needs_approval=True)


async def waiting(app: App) -> list[str]:
    return [turn.id for turn in await app.turns.list(TurnQuery(waiting=True))]


async def test_a_turn_waits_until_its_calls_are_answered_or_given_up(lab: Lab) -> None:
    async with open_app(lab.settings) as app:
        agent = (await lab.agent(app.host)).id
        asks = script({"tool": "buy", "args": {"x": "cups"}}, {"text": "As you wish."})
        events = await take(app.host, agent, asks, tools=[BUY])
        assert await waiting(app) == [of_kind(events, Started)[0].turn_id]
        [request] = of_kind(events, ApprovalRequest)
        await take(app.host, agent, approvals=[Approval(request.call_id, approve=False)], tools=[BUY])
        assert await waiting(app) == []
        again = of_kind(await take(app.host, agent, asks, tools=[BUY]), Started)[0].turn_id
        assert await waiting(app) == [again]
        await cancel_turn(app.host, app.turns, OPERATOR, again)
        assert await waiting(app) == []
