"""Wraps a call of an operation, whatever the interface: identify the caller, run, and write the journal entry."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from opentelemetry import trace

from frontdesk.app import App
from frontdesk.identity.model import Caller, Signals
from frontdesk.journal.model import Outcome
from frontdesk.journal.service import CallRecord
from frontdesk.operations import Answer

T = TypeVar("T")
Identify = Callable[[Signals], Awaitable[Caller]]


async def run_call(
    app: App,
    surface: str,
    action: str,
    signals: Signals,
    work: Callable[[Caller], Awaitable[T]],
    identify: Identify | None = None,
) -> T:
    """Run the work of one call for the caller that its signals prove, and record how it ended.

    Errors go on to the interface, which turns them into its protocol's form. `identify` is for interfaces that take
    the caller from something else than the signals alone.
    """
    with CallRecord(app.journal, surface, action, Caller(signals.request_id)) as record:
        record.signals = signals
        caller = record.caller = await (identify or app.identity.identify)(signals)
        _mark_span(caller)
        answer = await work(caller)
        if isinstance(answer, Answer) and not answer.ok:
            record.outcome = Outcome.FAILED
        return answer


def _mark_span(caller: Caller) -> None:
    span = trace.get_current_span()
    if span.is_recording():
        span.set_attributes(
            {
                "frontdesk.agent_id": caller.agent_id or "",
                "frontdesk.user_id": caller.user_id or "",
                "frontdesk.source": caller.source,
                "frontdesk.verified": caller.verified,
                "frontdesk.request_id": caller.request_id,
            }
        )
