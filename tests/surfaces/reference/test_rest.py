"""The page of the HTTP API names every route of its description, and nothing that is not there."""

import re

from frontdesk.app import App
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.rest.api import API_PREFIX, operation_routes
from tests.requirements import shows
from tests.support.reference import Table, code, page, tables
from tests.support.wire import send

# The page calls most ids just that, whatever they are the id of.
ID = re.compile(r"\{\w+\}")
UNDER = re.compile(r"^Under `(/\S+)`")


def told() -> set[str]:
    return {route for table in tables(page("rest"), "route") for route in _routes(table)}


def _routes(table: Table) -> set[str]:
    """The routes of a table, each with the beginning that the page says once."""
    under = UNDER.match(table.before)
    found = [route.partition("?")[0].split(" ", 1) for row in table.rows for route in code(row[0])]
    return {ID.sub("{}", f"{method} {under[1] if under else ''}{path}".rstrip("/")) for method, path in found}


async def described(app: App) -> set[str]:
    """What the description for programs names, and the two routes that are outside of it."""
    answer = await send(build_application(app), {}, b"", path="/api/openapi.json", method="GET")
    ours = {
        ID.sub("{}", f"{method.upper()} {API_PREFIX}{path}")
        for path, of in answer.json["paths"].items()
        for method in of
    }
    return ours | {f"GET {route.path}" for route in operation_routes(app)}


@shows("DOCS-MEMORY")
async def test_every_route_is_told_and_no_other(app: App) -> None:
    real = await described(app)
    assert (real - told(), told() - real) == (set(), set())
