"""What can be seen afterwards: the journal, the metrics, the spans, the log."""

import json
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from frontdesk.app import App, open_app, running
from frontdesk.errors import (
    ConfigurationError,
    FrontdeskError,
    Invalid,
    MissingAgentId,
    MissingScope,
    NotFound,
    PendingApproval,
    RateLimited,
    Unauthenticated,
    Unavailable,
    Unstorable,
)
from frontdesk.identity.model import AgentIdSource
from frontdesk.interfaces.http.application import build_application
from frontdesk.journal.model import EntryKind, Outcome
from frontdesk.journal.service import outcome_of_error
from frontdesk.journal.store import JournalQuery
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.wire import MODERN, call, send

pytestmark = pytest.mark.anyio


async def some_calls(app: App) -> None:
    asgi = build_application(app)
    said, body = call(MODERN)
    await send(asgi, said | {"x-agent-id": "agent-1", "x-request-id": "r-1"}, body)
    await send(asgi, said, call(MODERN, arguments={"agent_id": "agent-2"})[1])
    await send(asgi, said | {"x-agent-id": "agent-1"}, call(MODERN, arguments={"agent_id": "agent-2"})[1])
    await send(asgi, said | {"x-agent-id": "no!"}, body)
    await send(asgi, said | {"authorization": "Bearer wrong"}, body)


async def test_every_call_and_denial_leaves_one_row(app: App) -> None:
    await some_calls(app)
    await app.journal.flush()
    rows = [entry for _, entry in await app.journal.read(JournalQuery())]
    assert [(row.outcome, row.source, row.reason) for row in rows] == [
        (Outcome.OK, AgentIdSource.HEADER, None),
        (Outcome.OK, AgentIdSource.PARAMETER, None),
        (Outcome.REFUSED, AgentIdSource.HEADER, "AgentIdMismatch"),
        (Outcome.REFUSED, AgentIdSource.HEADER, "InvalidAgentId"),
        (Outcome.DENIED, AgentIdSource.NONE, "Unauthenticated"),
    ]
    assert (rows[0].agent_id, rows[0].request_id, rows[0].action) == ("agent-1", "r-1", "whoami")
    assert rows[-1].kind is EntryKind.DENIAL


async def test_what_is_refused_is_refused_at_every_endpoint(app: App) -> None:
    asgi = build_application(app)
    said, body = call(MODERN, "promptyoself_cancel", {"schedule_id": "4711", "agent_id": "agent-1"})
    told = json.loads((await send(asgi, said, body)).body)["result"]["structuredContent"]
    assert told == {"error": "Schedule 4711 not found or already cancelled"}
    missing = await send(asgi, {"x-agent-id": "agent-1"}, b"", path="/api/v1/schedules/4711", method="DELETE")
    assert missing.status == 404
    assert [(row.surface, row.outcome, row.reason) for row in app.journal._waiting] == [
        ("mcp", Outcome.REFUSED, "NotFound"),
        ("rest", Outcome.REFUSED, "NotFound"),
    ]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Unauthenticated(""), Outcome.DENIED),
        (MissingScope("tools:call"), Outcome.DENIED),
        (RateLimited("agent-1", 1), Outcome.LIMITED),
        (NotFound(""), Outcome.REFUSED),
        (Invalid(""), Outcome.REFUSED),
        (PendingApproval([]), Outcome.REFUSED),
        (MissingAgentId(), Outcome.REFUSED),
        (Unstorable(""), Outcome.REFUSED),
        (Unavailable(""), Outcome.FAILED),
        (ConfigurationError(""), Outcome.FAILED),
        (FrontdeskError(""), Outcome.FAILED),
        (ZeroDivisionError(), Outcome.FAILED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_outcome_says_whose_fault_it_was(error: Exception, outcome: Outcome) -> None:
    assert outcome_of_error(error) is outcome


@shows("METRICS")
async def test_metrics_tell_header_from_parameter_and_count_what_went_wrong(app: App) -> None:
    await some_calls(app)
    shown = (await send(build_application(app), {}, b"", path="/metrics", method="GET")).body.decode()
    for line in (
        'frontdesk_agent_id_source_total{source="header",verified="false"} 3.0',
        'frontdesk_agent_id_source_total{source="parameter",verified="false"} 1.0',
        'frontdesk_refusals_total{reason="AgentIdMismatch",source="header"} 1.0',
        'frontdesk_refusals_total{reason="InvalidAgentId",source="header"} 1.0',
        'frontdesk_calls_total{action="whoami",outcome="ok",surface="mcp"} 2.0',
        'frontdesk_call_seconds_count{action="whoami",surface="mcp"} 4.0',
    ):
        assert line in shown


async def test_metrics_do_not_count_twice(app: App) -> None:
    await some_calls(app)
    app.journal.render_metrics()
    await app.journal.flush()
    await app.journal.flush()
    assert b'outcome="ok",surface="mcp"} 2.0' in app.journal.render_metrics()


async def test_a_callers_text_never_becomes_a_label(app: App) -> None:
    asgi = build_application(app)
    await send(asgi, call(MODERN, "made-up-tool")[0], call(MODERN, "made-up-tool")[1])
    await send(asgi, {"authorization": "Bearer x"}, b"", path="/made-up-path", method="GET")
    assert b"made-up" not in app.journal.render_metrics()


async def test_stopping_writes_what_is_left(tmp_path: Path) -> None:
    async with open_app(settings_with(FRONTDESK_DATA=tmp_path / "data")) as app:
        async with running(app):
            await some_calls(app)
        assert len(await app.journal.read(JournalQuery())) == 5


@pytest.mark.parametrize("beside", [{}, {"progressToken": 1}], ids=["straight", "by the SDK"])
async def test_a_span_says_who_called_and_belongs_to_the_callers_trace(
    app: App, monkeypatch: pytest.MonkeyPatch, beside: dict[str, object]
) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("mcp.shared._otel._tracer", provider.get_tracer("test"))
    monkeypatch.setattr("frontdesk.interfaces.mcp.http.tracer", provider.get_tracer("test"))
    said, body = call(MODERN, meta=beside)
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    parent = {"traceparent": f"00-{trace_id}-b7ad6b7169203331-01"}
    await send(build_application(app), said | parent | {"x-agent-id": "agent-1", "x-request-id": "r-7"}, body)
    (span,) = [span for span in exporter.get_finished_spans() if span.name == "tools/call whoami"]
    assert span.attributes is not None
    assert span.attributes["frontdesk.agent_id"] == "agent-1"
    assert span.attributes["frontdesk.request_id"] == "r-7"
    assert span.kind is trace.SpanKind.SERVER
    assert span.context is not None
    assert format(span.context.trace_id, "032x") == trace_id
