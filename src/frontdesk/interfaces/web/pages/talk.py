"""Shows a conversation with an agent, sends messages, and decides on calls that wait for approval."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from frontdesk.agents.host import EVERYONE, Approval, Conversation, HistoryItem, PersonFilter, Prompt
from frontdesk.agents.turns.model import TurnQuery
from frontdesk.agents.turns.operations import TurnAnswer, ask_agent
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.interfaces.web.agent_lookup import agent_path, require_agent
from frontdesk.interfaces.web.model import PageContent, PageRedirect, PageRequest
from frontdesk.interfaces.web.pages.turns import ENDINGS, UNKNOWN_SENDER, MessageSender, find_senders
from frontdesk.interfaces.web.rendering import shorten
from frontdesk.llm.events import (
    ApprovalRequest,
    Compacted,
    Done,
    Event,
    MemoryEdit,
    TextChunk,
    ThoughtChunk,
    ToolCall,
    ToolReturn,
    UserMedia,
    UserText,
)

OWN_CONVERSATION = ("", "Its own conversation")
YOUR_CONVERSATION = ("", "Your first conversation")


def own_conversation(newest: Sequence[Conversation], most: int) -> str | None:
    """The agent's first conversation: the oldest, and so the last. None if the list is not complete."""
    return newest[-1].id if newest and len(newest) < most else None


def conversation_choices(
    newest: Sequence[Conversation], most: int, where: str | None, user_id: str | None = None
) -> tuple[str, Sequence[tuple[str, str]]]:
    """(the shown conversation, the conversations to choose from).

    The person's first conversation comes first and is the default. For a person without a name that is the agent's
    own conversation.
    """
    own = own_conversation(newest, most) if user_id is None else None
    chosen = "" if where in (None, own) else where
    listed = [
        OWN_CONVERSATION if user_id is None else YOUR_CONVERSATION,
        *((one.id, _conversation_label(one)) for one in newest if one.id != own),
    ]
    return chosen, listed if chosen in dict(listed) else [*listed, (chosen, shorten(chosen, 60))]


def _conversation_label(one: Conversation) -> str:
    whose = f", with {shorten(one.user_id, 40)}" if one.user_id else ""
    return f"{shorten(one.title, 60) or shorten(one.id, 24)}{whose}, started {one.created_at:%Y-%m-%d %H:%M} UTC"


@dataclass(frozen=True, slots=True)
class TalkLine:
    """One item of a conversation. An item with an `aside` is folded away."""

    at: datetime
    who: str
    text: str
    aside: str = ""
    sender: MessageSender = field(default=UNKNOWN_SENDER, kw_only=True)


def talk_lines(items: Sequence[HistoryItem], senders: Mapping[str, MessageSender]) -> Sequence[TalkLine]:
    """The items of a conversation. `senders` are the known senders of its turns."""
    found = [(one, _talk_line(one.at, one.event)) for one in items]
    return [
        replace(line, sender=senders.get(one.turn_id, UNKNOWN_SENDER).of(line.text))
        for one, line in found
        if line is not None
    ]


def _talk_line(at: datetime, event: Event) -> TalkLine | None:
    told = _spoken_text(event) or _folded_text(event)
    return TalkLine(at, *told) if told is not None else None


def _spoken_text(event: Event) -> tuple[str, str] | None:
    """(speaker, text) of a message."""
    match event:
        case UserText(text):
            return "person", text
        case UserMedia(mime):
            return "person", f"[{mime}]"
        case TextChunk(text):
            return "agent", text
        case Done(stop) if stop.is_broken:
            return "turn", f"The turn ended early: {ENDINGS[stop]}"
        case _:
            return None


def _folded_text(event: Event) -> tuple[str, str, str] | None:
    """(actor, full text, summary) of an event."""
    match event:
        case ThoughtChunk(text):
            found = ("agent", text, "thought")
        case ToolCall(name=name, arguments=arguments):
            found = ("agent", format_arguments(arguments), f"calls {shorten(name, 80)}")
        case ToolReturn(name=name, text=text, status=status):
            found = ("tool", text, f"{shorten(name, 80)} answers: {status}")
        case MemoryEdit(label=label, after=after):
            found = ("agent", after, f"remembers in {shorten(label, 80)}")
        case Compacted(summary, by_model):
            how = (
                "summarized the conversation so far"
                if by_model
                else "shortened the conversation so far, without a summary"
            )
            found = ("agent", summary, how)
        case ApprovalRequest(name=name, arguments=arguments):
            found = ("agent", format_arguments(arguments), f"waits for approval of {shorten(name, 80)}")
        case _:
            found = None
    return found


def format_arguments(arguments: Mapping[str, Any]) -> str:
    """The arguments of a call as text."""
    return json.dumps(arguments, indent=2, ensure_ascii=False, default=str)


CONVERSATIONS = 20
MESSAGES = 100
# Browsers wait about this long for an answer.
ANSWER_SECONDS = 240.0
DECISION_PREFIX = "call."


async def show_talk(request: PageRequest, wrong: str | None = None) -> PageContent:
    """The conversation, newest item last."""
    agent, host = await require_agent(request), request.app.host
    where = (request.form or request.query).get("conversation") or None
    # Their own first conversation, or any chosen one: the viewer is an administrator.
    owner: PersonFilter = request.caller.user_id if where is None else EVERYONE
    said = await host.history(agent.id, where, limit=MESSAGES, user_id=owner)
    taken = await request.app.turns.list(TurnQuery(agent_id=agent.id, limit=MESSAGES))
    chosen, conversations = conversation_choices(
        await host.conversations(agent.id, CONVERSATIONS), CONVERSATIONS, where, request.caller.user_id
    )
    context = {
        "agent": agent,
        "known": True,
        "base": agent_path(request),
        "tab": "talk",
        "conversations": conversations,
        "where": chosen,
        "lines": talk_lines(said, await find_senders(request, taken)),
        "pending": [(one, format_arguments(one.arguments)) for one in await host.pending(agent.id, where, owner)],
        "most": MESSAGES,
        "wrong": wrong,
    }
    return PageContent("agents/talk.html", f"Talk with {shorten(agent.name, 80)}", context)


async def send_message(request: PageRequest) -> PageRedirect | PageContent:
    """Send a message and wait for the answer."""
    agent, where = await require_agent(request), request.form.get("conversation") or None
    # With a template, everybody talks through an agent of their own, which has its own page.
    mine = await request.app.host.agent_for_person(agent.id, request.caller.user_id)
    if mine != agent.id:
        return PageRedirect(
            _talk_path(request, None, mine), "This is your own agent, created from the template; send your message here"
        )
    text = request.form.get("text", "").replace("\r\n", "\n")
    return await _take_turn(
        request, Prompt(agent.id, _message_caller(request), text, conversation_id=where, runs=True), where
    )


async def decide_calls(request: PageRequest) -> PageRedirect | PageContent:
    """Approve or reject each waiting call."""
    agent, where = await require_agent(request), request.form.get("conversation") or None
    words = {
        name.removeprefix(DECISION_PREFIX): said
        for name, said in request.form.items()
        if name.startswith(DECISION_PREFIX)
    }
    approvals = [Approval(call_id, said == "approve") for call_id, said in words.items()]
    prompt = Prompt(agent.id, _message_caller(request), approvals=approvals, conversation_id=where, runs=True)
    return await _take_turn(request, prompt, where)


async def begin_conversation(request: PageRequest) -> PageRedirect:
    agent = await require_agent(request)
    made = await request.app.host.start_conversation(agent.id, request.caller.user_id)
    return PageRedirect(_talk_path(request, made.id, made.agent_id), "A new conversation, without messages")


async def _take_turn(request: PageRequest, prompt: Prompt, where: str | None) -> PageRedirect | PageContent:
    answer = await ask_agent(request.app.host, request.app.journal, "web", prompt, ANSWER_SECONDS)
    return (
        await show_talk(request, _problem_text(answer))
        if answer.stop.is_broken
        else PageRedirect(_talk_path(request, where), "The turn has ended")
    )


def _message_caller(request: PageRequest) -> Caller:
    """The person who talks, with the rights of their key or token, and without other rights of the operator."""
    return replace(request.caller, local=False, any_agent=False, source=AgentIdSource.NONE)


def _problem_text(answer: TurnAnswer) -> str:
    return answer.trouble or f"The turn ended early: {ENDINGS[answer.stop]}"


def _talk_path(request: PageRequest, conversation_id: str | None, agent_id: str | None = None) -> str:
    where = agent_path(request, "talk") if agent_id is None else f"/agents/{quote(agent_id, safe='')}/talk"
    return f"{where}?{urlencode({'conversation': conversation_id})}#newest" if conversation_id else f"{where}#newest"
