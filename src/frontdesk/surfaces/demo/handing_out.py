"""Keys for people, agents and scripts, and what they are used for: most of it well, some in vain."""

from dataclasses import dataclass
from datetime import timedelta

from frontdesk.agents.host import Agent
from frontdesk.identity.model import Caller
from frontdesk.identity.service import Identity
from frontdesk.surfaces.demo.doors import Doors
from frontdesk.surfaces.demo.place import NAME
from frontdesk.tools.house import House
from frontdesk.tools.rights.model import Effect

QUARTER = timedelta(days=90)
A_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Keys:
    """The texts of the keys, for as long as the demo is made; nobody is told them."""

    person: str
    agent: str
    reading: str
    revoked: str


async def hand_out(identity: Identity, person: str, agent: Agent) -> Keys:
    _, phone = await identity.create_key(name="Ann's phone", agent_id=None, user_id=person)
    old, _ = await identity.create_key(name="Bruno on the support desk", agent_id=agent.id, user_id=None)
    _, desk = await identity.rotate_key(old.id, A_DAY)
    _, report = await identity.create_key(
        name="Weekly report", agent_id=None, user_id=person, scopes=frozenset({"tasks.read"}), lifetime=QUARTER
    )
    lost, laptop = await identity.create_key(name="Lost laptop", agent_id=None, user_id=person)
    await identity.revoke_key(lost.id)
    return Keys(phone, desk, report, laptop)


async def use(doors: Doors, keys: Keys, agents: tuple[Agent, Agent, Agent]) -> None:
    """Calls as they come over a day; the last ones are turned away, or come to nothing."""
    ada, bruno, cleo = agents
    desk = f"Bearer {keys.agent}"
    for words in ("search support tickets", "send an email to a customer", "book a meeting room"):
        await doors.mcp("find_tools", {"query": words}, authorization=desk)
    await doors.mcp("call_tool", _call("search_tickets", words="refund"), authorization=desk)
    mail = _call("send_email", to="jo@example.com", subject="Your ticket", body="It is solved.")
    await doors.mcp("call_tool", mail, authorization=desk)
    for agent in (ada, ada, cleo):
        await doors.mcp("whoami", x_agent_id=agent.id)
        await doors.mcp("promptyoself_list", x_agent_id=agent.id)
    # As older clients do it: they name themselves in the call, and not in a header.
    await doors.mcp("whoami", {"agent_id": cleo.id})
    await doors.mcp("promptyoself_list", {"agent_id": cleo.id})
    await doors.rest("GET", "/api/tasks", authorization=f"Bearer {keys.reading}")
    await doors.rest("GET", "/api/memories", authorization=f"Bearer {keys.person}")
    await _in_vain(doors, keys, ada, bruno)


async def _in_vain(doors: Doors, keys: Keys, ada: Agent, bruno: Agent) -> None:
    desk = f"Bearer {keys.agent}"
    await doors.mcp("whoami", {"agent_id": ada.id}, authorization=desk, x_agent_id=ada.id)
    await doors.rest("POST", "/api/tasks", {"title": "Not allowed"}, authorization=f"Bearer {keys.reading}")
    await doors.rest("GET", "/api/tasks", authorization=f"Bearer {keys.revoked}")
    await doors.mcp("call_tool", _call("send_email", to="nobody", subject="Hello"), authorization=desk)
    await doors.mcp("call_tool", {"name": "fax", "arguments": {}}, x_agent_id=bruno.id)


def _call(tool: str, **arguments: str) -> dict[str, object]:
    return {"name": f"{NAME}::{tool}", "arguments": arguments}


async def deny(house: House, operator: Caller, doors: Doors, agent: Agent) -> None:
    """One agent may not send mail, and tries."""
    await house.add_rule(operator, f"agent:{agent.id}", Effect.DENY, f"{NAME}::send_email")
    await doors.mcp("call_tool", _call("send_email", to="ann@example.com", subject="Hi"), x_agent_id=agent.id)
