"""Talking with an agent: what was said in a conversation, a message and its answer, a word on what waits for one."""

from dataclasses import replace
from urllib.parse import quote, urlencode

from frontdesk.agents.asking import Answer, ask
from frontdesk.agents.host import EVERYONE, Approval, Prompt, Whose
from frontdesk.agents.turns.model import TurnQuery
from frontdesk.identity.model import Caller, Source
from frontdesk.surfaces.web.marks import short
from frontdesk.surfaces.web.model import Asked, Done, Shown
from frontdesk.surfaces.web.pages.agents.found import place, the_agent
from frontdesk.surfaces.web.pages.agents.lines import lines, written
from frontdesk.surfaces.web.pages.agents.threads import choices
from frontdesk.surfaces.web.pages.turns.senders import senders
from frontdesk.surfaces.web.pages.turns.words import ENDINGS

CONVERSATIONS = 20
MESSAGES = 100
# A browser waits about so long, and a person less.
SECONDS = 240.0
DECIDED = "call."


async def talk(asked: Asked, wrong: str | None = None) -> Shown:
    """A conversation as it stands, the newest last."""
    agent, host = await the_agent(asked), asked.app.host
    where = (asked.form or asked.query).get("conversation") or None
    # Their own first conversation, or whichever was chosen: whoever looks runs the installation.
    whose: Whose = asked.caller.user_id if where is None else EVERYONE
    said = await host.history(agent.id, where, limit=MESSAGES, user_id=whose)
    taken = await asked.app.turns.list(TurnQuery(agent_id=agent.id, limit=MESSAGES))
    chosen, conversations = choices(
        await host.conversations(agent.id, CONVERSATIONS), CONVERSATIONS, where, asked.caller.user_id
    )
    context = {
        "agent": agent,
        "known": True,
        "base": place(asked),
        "tab": "talk",
        "conversations": conversations,
        "where": chosen,
        "lines": lines(said, await senders(asked, taken)),
        "pending": [(one, written(one.arguments)) for one in await host.pending(agent.id, where, whose)],
        "most": MESSAGES,
        "wrong": wrong,
    }
    return Shown("agents/talk.html", f"Talk with {short(agent.name, 80)}", context)


async def say(asked: Asked) -> Done | Shown:
    """Send a message and wait for the answer."""
    agent, where = await the_agent(asked), asked.form.get("conversation") or None
    # With a template nobody talks but through an agent of their own, which has its own page.
    mine = await asked.app.host.serving(agent.id, asked.caller.user_id)
    if mine != agent.id:
        return Done(_at(asked, None, mine), "This is your own agent, made from the template; say it here")
    text = asked.form.get("text", "").replace("\r\n", "\n")
    return await _turn(asked, Prompt(agent.id, _speaker(asked), text, conversation_id=where, runs=True), where)


async def decide(asked: Asked) -> Done | Shown:
    """Give one's word on each call that waits for it."""
    agent, where = await the_agent(asked), asked.form.get("conversation") or None
    words = {name.removeprefix(DECIDED): said for name, said in asked.form.items() if name.startswith(DECIDED)}
    approvals = [Approval(call_id, said == "approve") for call_id, said in words.items()]
    prompt = Prompt(agent.id, _speaker(asked), approvals=approvals, conversation_id=where, runs=True)
    return await _turn(asked, prompt, where)


async def begin(asked: Asked) -> Done:
    agent = await the_agent(asked)
    made = await asked.app.host.converse(agent.id, asked.caller.user_id)
    return Done(_at(asked, made.id, made.agent_id), "A new conversation; nothing was said in it yet")


async def _turn(asked: Asked, prompt: Prompt, where: str | None) -> Done | Shown:
    answer = await ask(asked.app.host, asked.app.journal, "web", prompt, SECONDS)
    return (
        await talk(asked, _trouble(answer)) if answer.stop.is_broken else Done(_at(asked, where), "The turn has ended")
    )


def _speaker(asked: Asked) -> Caller:
    """Who speaks, with what their key or token lets them do on these pages, and no other rights of the operator's."""
    return replace(asked.caller, local=False, any_agent=False, source=Source.NONE)


def _trouble(answer: Answer) -> str:
    return answer.trouble or f"The turn ended early: {ENDINGS[answer.stop]}"


def _at(asked: Asked, conversation_id: str | None, agent_id: str | None = None) -> str:
    where = place(asked, "talk") if agent_id is None else f"/agents/{quote(agent_id, safe='')}/talk"
    return f"{where}?{urlencode({'conversation': conversation_id})}#newest" if conversation_id else f"{where}#newest"
