"""An agent that serves several people keeps what it learns of each with that person, on both databases."""

from collections.abc import Sequence
from typing import Any

import pytest

from frontdesk.agents.host import EVERYONE, AgentHost, MemoryBlock, NewAgent
from frontdesk.errors import Invalid, NotFound
from frontdesk.identity.model import Caller
from frontdesk.llm.events import Started, ToolReturn, UserText
from tests.hosts.lab import Lab, of_kind, said, script, take
from tests.requirements import shows

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("lab", ["sqlite", "postgresql"], indirect=True)]
OPERATOR = Caller("req-operator", local=True)
NOBODY = Caller("req-nobody")


def person(name: str) -> Caller:
    return Caller(f"req-{name}", user_id=name, verified=True, credential_id=f"key:{name}")


def insert(label: str, text: str) -> dict[str, Any]:
    return {"tool": "memory_insert", "args": {"label": label, "new_string": text}}


def asked_of(lab: Lab) -> str:
    """Everything that models were sent since this was last asked."""
    said_so_far = [str(message["content"]) for seen in lab.models.seen for message in seen.body["messages"]]
    lab.models.seen.clear()
    return "\n".join(said_so_far)


async def values(host: AgentHost, agent_id: str, who: Any) -> dict[str, str]:
    return {block.label: block.value for block in await host.blocks(agent_id, who)}


def told(events: Sequence[Any]) -> list[str]:
    return [back.text for back in of_kind(events, ToolReturn)]


@shows("KEPT-01")
async def test_what_a_turn_learns_of_one_person_is_in_no_request_for_another(lab: Lab) -> None:
    async with lab.open() as host:
        agent = (await host.create(NewAgent("Concierge", blocks=[MemoryBlock("human", "Speaks French")]))).id
        await take(host, agent, script(insert("human", "ann-secret"), {"text": "ann-said"}), caller=person("ann"))
        await take(host, agent, script(insert("human", "nobody-secret"), {"text": "ok"}), caller=NOBODY)
        asked_of(lab)
        search = {"tool": "conversation_search", "args": {"query": "said"}}
        await take(host, agent, script(search, insert("human", "bob-secret"), {"text": "ok"}), caller=person("bob"))
        asked = asked_of(lab)
        assert "Speaks French" in asked
        assert not [word for word in ("ann-secret", "ann-said", "nobody-secret") if word in asked]
        assert 'the user id "bob"' in asked
        assert (await values(host, agent, "ann"))["human"] == "Speaks French\nann-secret"
        assert (await values(host, agent, "bob"))["human"] == "Speaks French\nbob-secret"
        assert (await values(host, agent, None))["human"] == "Speaks French\nnobody-secret"
        assert (await values(host, agent, EVERYONE))["human"] == "Speaks French"
        assert await host.people(agent) == ["ann", "bob"]
        asked_of(lab)
        await take(host, agent, "hello", caller=NOBODY)
        assert "names no person" in asked_of(lab)
        versions = await host.block_versions(agent, "human", "ann")
        assert [version.value for version in versions] == ["Speaks French"]


@shows("KEPT-01")
async def test_shared_blocks_are_changed_only_for_those_who_run_the_agent_or_where_they_allowed_it(lab: Lab) -> None:
    async with lab.open() as host:
        agent = (await host.create(NewAgent("Ada", blocks=[MemoryBlock("team", "Ann leads")], owner="olga"))).id
        asked_of(lab)
        for caller in (person("ann"), NOBODY):
            [answer] = told(await take(host, agent, script(insert("persona", "obey"), {"text": "ok"}), caller=caller))
            assert "shared by everybody" in answer
            assert "human" in answer
        asked = asked_of(lab)
        assert '<block label="persona" limit="5000" read_only>' in asked
        for caller in (OPERATOR, person("olga"), Caller("req-local", user_id="local", credential_id="local")):
            await take(host, agent, script(insert("persona", caller.request_id), {"text": "ok"}), caller=caller)
        persona = (await values(host, agent, "ann"))["persona"]
        assert persona.splitlines()[1:] == ["req-operator", "req-olga", "req-local"]
        with pytest.raises(Invalid, match="shared by everybody"):
            await host.write_block(agent, "team", "Bob leads", None, "ann", runs=False)
        assert (await host.set_block(agent, "team", people_write=True)).people_write
        await take(host, agent, script(insert("team", "Bob cooks"), {"text": "ok"}), caller=person("ann"))
        assert (await values(host, agent, "bob"))["team"] == "Ann leads\nBob cooks"
        # Any block may become one for each person; what it says now is what all begin with.
        await host.set_block(agent, "team", per_person=True)
        await take(host, agent, script(insert("team", "mine"), {"text": "ok"}), caller=person("ann"))
        assert "mine" not in (await values(host, agent, "bob"))["team"]


@shows("KEPT-01")
async def test_nobody_is_let_into_anothers_conversation_but_the_operator(lab: Lab) -> None:
    async with lab.open() as host:
        agent = (await host.create(NewAgent("Ada"))).id
        for name in ("ann", "bob"):
            await take(host, agent, script({"text": f"hello {name}"}), caller=person(name))
        [ann] = await host.conversations(agent, 10, "ann")
        [bob] = await host.conversations(agent, 10, "bob")
        assert ann.id != bob.id
        assert {one.user_id for one in await host.conversations(agent, 10)} == {None, "ann", "bob"}
        for asks in (
            lambda: take(host, agent, "what did Ann say?", caller=person("bob"), conversation_id=ann.id),
            lambda: take(host, agent, "what did Ann say?", caller=NOBODY, conversation_id=ann.id),
            lambda: host.history(agent, ann.id, user_id="bob"),
            lambda: host.pending(agent, ann.id, None),
            lambda: host.cancel(agent, ann.id, "bob"),
            lambda: host.fork(agent, ann.id, "bob"),
            lambda: host.rewind(agent, ann.id, 1, "bob"),
            lambda: host.compact(agent, ann.id, "bob"),
        ):
            with pytest.raises(NotFound):
                await asks()
        await host.forget(agent, ann.id, "bob")
        assert "hello ann" in said([one.event for one in await host.history(agent, user_id="ann")])
        # Whoever helps out there does so in Ann's name: her memory, and her turn.
        asked_of(lab)
        events = await take(
            host, agent, script(insert("human", "x"), {"text": "ok"}), caller=OPERATOR, conversation_id=ann.id
        )
        assert 'user id "ann"' in asked_of(lab)
        assert (await values(host, agent, "ann"))["human"] == "x"
        assert (await values(host, agent, None))["human"] == ""
        turn_id = of_kind(events, Started)[0].turn_id
        theirs = await host.history(agent, ann.id, user_id="ann")
        assert [one.turn_id for one in theirs if isinstance(one.event, UserText)][-1] == turn_id
        with pytest.raises(Invalid, match="shared by everybody"):
            await host.write_block(agent, "persona", "x", None, "ann", runs=False)
