"""Shows the list of turns and one turn with its events; cancels a turn and answers its approvals."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from hashlib import blake2s
from typing import Any, cast
from urllib.parse import quote

import anyio

from frontdesk.agents.host import Agent, Approval, HistoryItem
from frontdesk.agents.turns.model import TurnQuery, TurnRecord
from frontdesk.agents.turns.operations import TurnDetails, read_turn
from frontdesk.agents.turns.operations import answer_approvals as operations_answer_approvals
from frontdesk.agents.turns.operations import cancel_turn as operations_cancel_turn
from frontdesk.agents.turns.operations import list_turns as operations_list_turns
from frontdesk.errors import Invalid, NotFound, Unavailable
from frontdesk.interfaces.web.model import ActionRoute, PageContent, PageRedirect, PageRequest, PageRoute, StreamRoute
from frontdesk.interfaces.web.rendering import shorten
from frontdesk.interfaces.web.text_diff import ChangedLine, diff_lines
from frontdesk.llm.events import (
    ApprovalRequest,
    Compacted,
    Event,
    Failed,
    MemoryEdit,
    Plan,
    PlanStep,
    StopReason,
    TextChunk,
    ThoughtChunk,
    ToolCall,
    ToolReturn,
    UserMedia,
    UserText,
)
from frontdesk.schedules.overview_store import RunReference

RUNNING = "running"
WAITING = "waiting"
# Labels for people. The address uses the stored words.
ENDINGS = {
    StopReason.END_TURN: "done",
    StopReason.REQUIRES_APPROVAL: "asked for approval",
    StopReason.MAX_STEPS: "out of steps",
    StopReason.MAX_TOKENS: "out of tokens",
    StopReason.REFUSAL: "refused",
    StopReason.CANCELLED: "cancelled",
    StopReason.INTERRUPTED: "interrupted",
    StopReason.ERROR: "failed",
}
OUTCOME_CHOICES = (
    ("", "Any"),
    (RUNNING, "Running"),
    (WAITING, "Waiting for approval"),
    *((str(stop), name.capitalize()) for stop, name in ENDINGS.items()),
)


@dataclass(frozen=True, slots=True)
class TurnListFilter:
    """The filter in the list's address."""

    agent: str = ""
    outcome: str = ""
    before: str = ""
    after: str = ""

    @property
    def newest(self) -> bool:
        """Whether the list starts with the newest turn, so that new turns belong on it."""
        return not self.before and not self.after

    def query(self, limit: int) -> TurnQuery:
        known = {value for value, _ in OUTCOME_CHOICES}
        if self.outcome not in known:
            raise Invalid(
                f"'{self.outcome}' is not an outcome of turns; choose one of {', '.join(sorted(known - {''}))}"
            )
        stops = {str(stop): stop for stop in ENDINGS}
        return TurnQuery(
            agent_id=self.agent or None,
            stop=stops.get(self.outcome),
            running=self.outcome == RUNNING,
            waiting=self.outcome == WAITING,
            before=self.before or None,
            after=self.after or None,
            limit=limit,
        )


def turn_outcome(turn: TurnRecord) -> str:
    """The outcome of a turn, or its current state."""
    if turn.running or turn.stop is None:
        return RUNNING
    return WAITING if turn.waits else ENDINGS[turn.stop]


@dataclass(frozen=True, slots=True)
class MessageSender:
    """The sender of a turn: a schedule, a person, or unknown, with its page. `run_id` is the run that sent the turn."""

    name: str = "Somebody"
    page: str = ""
    run_id: str = ""

    @property
    def run(self) -> str:
        """The page of the run."""
        return f"/schedule/runs/{quote(self.run_id, safe='')}" if self.run_id else ""

    def of(self, text: str) -> "MessageSender":
        """The sender of a message. Runs put their id into their prompts, where hosts that store no turns keep it."""
        return self if self.run_id in text else UNKNOWN_SENDER


UNKNOWN_SENDER = MessageSender()


async def find_senders(request: PageRequest, turns: Sequence[TurnRecord]) -> Mapping[str, MessageSender]:
    """The sender of each turn, by the turns' ids."""
    names = {turn.otid for turn in turns if turn.otid is not None}
    runs = await request.app.schedules.overview.run_references(request.caller, names)
    return {turn.id: _sender_of(turn, runs.get(turn.otid or "")) for turn in turns}


def _sender_of(turn: TurnRecord, run: RunReference | None) -> MessageSender:
    # Senders choose the ids of turns, so a turn may carry the id of another agent's run.
    if run is not None and run.agent_id == turn.agent_id:
        number = run.schedule_id
        return MessageSender(f"Schedule {number}", f"/schedule/{number}", run.run_id)
    if turn.user_id:
        return MessageSender(shorten(turn.user_id, 60), f"/people/{quote(turn.user_id, safe='')}")
    return UNKNOWN_SENDER


def mark_of_list(turns: Sequence[TurnRecord]) -> str:
    return _mark([(one.id, one.running, one.stop, one.waits) for one in turns])


def mark_of_turn(account: TurnDetails) -> str:
    turn = account.turn
    state = (turn.running, turn.stop, turn.cancel_asked, account.after, account.trouble)
    return _mark([state, *(one.id for one in account.said), *(one.call_id for one in account.waiting)])


def _mark(seen: Sequence[object]) -> str:
    return blake2s(repr(seen).encode(), digest_size=8).hexdigest()


LONGEST_RAW = 20_000
ONE_LINE = 90


@dataclass(slots=True)
class TurnItem:
    """One item on the page. Only calls have arguments and a result; only memory edits have lines.

    `page` is the page of the sender, whose name the title starts with.
    """

    kind: str
    id: str
    at: datetime
    title: str
    text: str = ""
    arguments: str | None = None
    status: str = ""
    answered: bool = False
    lines: Sequence[ChangedLine] = ()
    steps: Sequence[PlanStep] = ()
    page: str = ""


@dataclass(frozen=True, slots=True)
class PendingCallView:
    """A call that waits for approval, with its arguments as text."""

    call_id: str
    name: str
    arguments: str


def pending_calls(account: TurnDetails) -> Sequence[PendingCallView]:
    return [PendingCallView(one.call_id, one.name, format_arguments(one.arguments)) for one in account.waiting]


def turn_items(said: Sequence[HistoryItem], sender: MessageSender = UNKNOWN_SENDER) -> Sequence[TurnItem]:
    """The items in order. Results are shown with their calls, and messages with their senders."""
    items: list[TurnItem] = []
    calls: dict[str, TurnItem] = {}
    for one in said:
        if isinstance(one.event, ToolReturn) and one.event.call_id in calls:
            _add_result(calls[one.event.call_id], one.event)
        elif (item := _sent_item(one, one.event, sender) or _event_item(one, one.event)) is not None:
            items.append(item)
            if isinstance(one.event, ToolCall):
                calls[one.event.call_id] = item
            elif isinstance(one.event, ApprovalRequest) and one.event.call_id in calls:
                # The call is shown already, and the form above says that it waits.
                calls[one.event.call_id].status = "waiting"
                items.pop()
    return items


def turn_as_data(account: TurnDetails) -> Mapping[str, Any]:
    """The stored events as data, with very long values cut."""
    return {
        "turn": _plain(asdict(account.turn)),
        "events": [
            {"id": one.id, "at": one.at, "event": type(one.event).__name__, **_event_fields(one.event)}
            for one in account.said
        ],
    }


def _sent_item(item: HistoryItem, event: Event, sender: MessageSender) -> TurnItem | None:
    match event:
        case UserText(text):
            who = sender.of(text)
            return TurnItem("said", item.id, item.at, f"{who.name} said", text, page=who.page)
        case UserMedia(mime, data):
            who = sender.of("")
            return TurnItem("said", item.id, item.at, f"{who.name} sent", f"{mime}, {len(data):,} bytes", page=who.page)
        case _:
            return None


def _event_item(item: HistoryItem, event: Event) -> TurnItem | None:
    found = TurnItem("", item.id, item.at, "")
    match event:
        case ToolCall(_, name, arguments) | ApprovalRequest(_, name, arguments):
            waits = "waiting" if isinstance(event, ApprovalRequest) else ""
            return replace(found, kind="call", title=name, arguments=format_arguments(arguments), status=waits)
        case ToolReturn(_, name, text, status):
            return replace(found, kind="call", title=name, text=text, status=str(status), answered=True)
        case MemoryEdit(label, before, after):
            return replace(found, kind="memory", title=f"Memory “{label}” changed", lines=diff_lines(before, after))
        case Plan(steps):
            return replace(found, kind="plan", title="Plan", steps=steps)
        case _:
            words = _text_of(event)
    return None if words is None else replace(found, kind=words[0], title=words[1], text=words[2])


def _text_of(event: Event) -> tuple[str, str, str] | None:
    """(kind, title, text) of an event that consists of text."""
    words = None
    match event:
        case ThoughtChunk(text):
            words = ("thought", "Thought", text)
        case TextChunk(text):
            words = ("text", "The agent said", text)
        case Compacted(summary, by_model):
            how = (
                "Summarized the conversation so far"
                if by_model
                else "Shortened the conversation so far, without a summary"
            )
            words = ("thought", how, summary)
        case Failed(trouble, message):
            words = ("failed", f"Failed: {trouble}", message)
        case _:
            pass
    return words


def _add_result(call: TurnItem, event: ToolReturn) -> None:
    call.text, call.status, call.answered = event.text, str(event.status), True


def format_arguments(arguments: Mapping[str, Any]) -> str:
    """Arguments as text. Empty if there are none."""
    if not arguments:
        return ""
    flat = json.dumps(arguments, ensure_ascii=False, default=str)
    return flat if len(flat) <= ONE_LINE else json.dumps(arguments, indent=2, ensure_ascii=False, default=str)


def _event_fields(event: Event) -> Any:  # noqa: ANN401 - any data
    return _plain(asdict(event))


def _plain(value: Any) -> Any:  # noqa: ANN401 - any data
    match value:
        case bytes():
            return f"{len(value):,} bytes"
        case str() if len(value) > LONGEST_RAW:
            return f"{value[:LONGEST_RAW]}… ({len(value) - LONGEST_RAW:,} characters more)"
        case dict():
            return {name: _plain(one) for name, one in cast("dict[str, Any]", value).items()}
        case list() | tuple():
            return [_plain(one) for one in cast("list[Any]", value)]
        case _:
            return value


SHOWN_TURNS = 25


def list_filter(request: PageRequest) -> TurnListFilter:
    return TurnListFilter(
        **{name: request.query.get(name, "").strip() for name in ("agent", "outcome", "before", "after")}
    )


async def list_turns(request: PageRequest) -> PageContent:
    """`/turns`: newest first, or from a position."""
    asks = list_filter(request)
    found = await operations_list_turns(
        request.app.host, request.app.turns, request.caller, asks.query(SHOWN_TURNS + 1)
    )
    more = len(found.turns) > SHOWN_TURNS
    # When paging to newer turns, the extra one comes first.
    turns = found.turns[1:] if more and asks.after else found.turns[:SHOWN_TURNS]
    context = {
        "turns": turns,
        "outcome": turn_outcome,
        "names": {agent.id: agent.name for agent in found.agents},
        "trouble": found.trouble,
        "asks": asks,
        "agents": _agent_choices(found.agents, asks.agent),
        "outcomes": OUTCOME_CHOICES,
        "newer": turns[0].id if turns and (asks.before or (asks.after and more)) else "",
        "older": turns[-1].id if turns and (more or asks.after) else "",
        "mark": mark_of_list(found.turns),
    }
    return PageContent("turns/list.html" if request.part else "turns/turns.html", "Turns", context)


async def show_turn(request: PageRequest) -> PageContent:
    """`/turns/{turn_id}`: everything that is stored about the turn."""
    account = await read_turn(request.app.host, request.app.turns, request.caller, request.path_params["turn_id"])
    template = "turns/account.html" if request.part else "turns/turn.html"
    sender = (await find_senders(request, [account.turn])).get(account.turn.id, UNKNOWN_SENDER)
    return PageContent(template, f"Turn of {_agent_name(account)}", _turn_context(account, sender))


def _turn_context(account: TurnDetails, sender: MessageSender) -> dict[str, object]:
    turn = account.turn
    return {
        "account": account,
        "turn": turn,
        "outcome": turn_outcome(turn),
        "agent_name": _agent_name(account),
        "sender": sender,
        "items": turn_items(account.said, sender),
        "waiting": pending_calls(account),
        "raw": turn_as_data(account),
        "live": turn.running or turn.waits,
        "mark": mark_of_turn(account),
    }


def _agent_name(account: TurnDetails) -> str:
    return account.agent.name if account.agent is not None else account.turn.agent_id


def _agent_choices(agents: Sequence[Agent], chosen: str) -> Sequence[tuple[str, str]]:
    """The agents to choose from, including the chosen agent even if it is unknown."""
    known = [("", "Any"), *((agent.id, agent.name[:60]) for agent in agents)]
    return known if any(chosen == value for value, _ in known) else [*known, (chosen, chosen[:60])]


# A turn may run in another process, so changes are found by polling.
LOOK_SECONDS = 1.0
# A turn on a Letta server takes four requests, so it is polled less often.
ASK_SECONDS = 3.0


async def stream_list(request: PageRequest) -> AsyncGenerator[Mapping[str, str]]:
    """An event whenever the newest turns change."""
    query = list_filter(request).query(SHOWN_TURNS + 1)
    seen = request.query.get("seen", "")
    while True:
        with suppress(Unavailable):
            mark = mark_of_list(await request.app.turns.list(query))
            if mark != seen:
                seen = mark
                yield {"seen": mark}
        await anyio.sleep(LOOK_SECONDS)


async def stream_turn(request: PageRequest) -> AsyncGenerator[Mapping[str, str]]:
    """An event whenever a turn changes, until it ends."""
    app, turn_id = request.app, request.path_params["turn_id"]
    seen = request.query.get("seen", "")
    pause = LOOK_SECONDS if app.host.features.keeps_turns else ASK_SECONDS
    with suppress(NotFound):
        while True:
            with suppress(Unavailable):
                account = await read_turn(app.host, app.turns, request.caller, turn_id)
                if (mark := mark_of_turn(account)) != seen:
                    seen = mark
                    yield {"seen": mark}
                if not (account.turn.running or account.turn.waits):
                    # Browsers open a stream again when it ends.
                    await anyio.sleep_forever()
            await anyio.sleep(pause)


APPROVE, REJECT = "approve", "reject"
LONGEST_REASON = 2_000


async def cancel_turn(request: PageRequest) -> PageRedirect:
    turn_id = request.path_params["turn_id"]
    await operations_cancel_turn(request.app.host, request.app.turns, request.caller, turn_id)
    return PageRedirect(f"/turns/{turn_id}", "The turn is being stopped")


async def answer_approvals(request: PageRequest) -> PageRedirect:
    turn_id, words = request.path_params["turn_id"], _parse_approvals(request.form)
    app = request.app
    sequel = await operations_answer_approvals(app.host, app.turns, app.journal, request.caller, turn_id, words)
    if sequel is None:
        return PageRedirect(f"/turns/{turn_id}", "Your answer is recorded; the agent continues after its current work")
    return PageRedirect(f"/turns/{sequel}", "Your answer is recorded; the agent continues here")


def _parse_approvals(form: Mapping[str, str]) -> Mapping[str, Approval]:
    """The decisions of a form: `call.N` is the call, `word.N` the decision, `reason.N` the reason."""
    found: dict[str, Approval] = {}
    for name, call_id in form.items():
        kind, _, number = name.partition(".")
        if kind == "call":
            word = form.get(f"word.{number}", "")
            if word not in (APPROVE, REJECT):
                raise Invalid("Approve or reject each waiting call")
            reason = form.get(f"reason.{number}", "").strip()[:LONGEST_REASON]
            found[call_id] = Approval(call_id, word == APPROVE, reason)
    return found


TURNS: tuple[PageRoute | ActionRoute | StreamRoute, ...] = (
    PageRoute("/turns", list_turns),
    PageRoute("/turns/{turn_id}", show_turn),
    ActionRoute("/turns/{turn_id}/cancel", cancel_turn),
    ActionRoute("/turns/{turn_id}/answer", answer_approvals),
    StreamRoute("/live/turns", stream_list),
    StreamRoute("/live/turns/{turn_id}", stream_turn),
)
