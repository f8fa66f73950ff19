"""Health and metrics."""

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from frontdesk import __version__
from frontdesk.app import App
from frontdesk.errors import MissingScope
from frontdesk.identity.rights import METRICS_READ, require, require_granted
from frontdesk.surfaces.gate import credential_caller, needs_credential
from frontdesk.surfaces.rest.refusals import refuse
from frontdesk.surfaces.visit import visit_of

HEALTH = "/api/health"
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
        check = require_granted if needs_credential(app, visit) else require
        try:
            check(credential_caller(visit), METRICS_READ)
        except MissingScope as error:
            return refuse(error)
        await app.schedules.measure()
        return Response(app.journal.render_metrics(), headers={"content-type": CONTENT_TYPE_LATEST})

    return [Route(HEALTH, health, methods=["GET"]), Route(METRICS, metrics, methods=["GET"])]
