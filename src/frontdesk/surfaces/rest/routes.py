"""Health and metrics."""

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from frontdesk import __version__
from frontdesk.app import App
from frontdesk.errors import MissingScope
from frontdesk.identity.inbound import resolve, traced
from frontdesk.identity.model import Caller, Signals
from frontdesk.identity.rights import METRICS_READ, require_house
from frontdesk.journal.record import Record
from frontdesk.surfaces.rest.refusals import refuse
from frontdesk.surfaces.visit import visit_of

HEALTH = "/api/health"
# Clients of zmemory ask behind the address that they were told, which may be that of the server or of its memory.
HEALTH_AT = (HEALTH, "/health", "/mcp/memory/health")
METRICS = "/metrics"


def routes(app: App) -> list[Route]:
    """Health is open and says little; metrics are for whoever is granted them."""

    async def health(_request: Request) -> JSONResponse:
        parts = await app.parts()
        well = all(state == "ok" for state in parts.values())
        shown = {name: "ok" if state == "ok" else "unavailable" for name, state in parts.items()}
        body = {"status": "ok" if well else "unavailable", "version": __version__, "parts": shown}
        return JSONResponse(body, 200 if well else 503)

    async def metrics(request: Request) -> Response:
        visit = visit_of(request.scope)
        signals = Signals(visit.request_id, credential=visit.credential, forwarded=visit.forwarded)
        try:
            require_house(resolve(signals, app.identity.policy), METRICS_READ)
        except MissingScope as error:
            with Record(app.journal, "http", METRICS, Caller(visit.request_id)) as record:
                record.trace(traced(signals))
                record.ended_by(error)
            return refuse(error)
        await app.schedules.executing.measure()
        return Response(app.journal.render_metrics(), headers={"content-type": CONTENT_TYPE_LATEST})

    return [*(Route(path, health, methods=["GET"]) for path in HEALTH_AT), Route(METRICS, metrics, methods=["GET"])]
