"""Declares how the HTTP API offers operations on a person's records: what is the same for all of their routes."""

from collections.abc import Mapping
from typing import Any, TypedDict, Unpack

from pydantic import BaseModel

from frontdesk.memory.operations.base import PersonRun, for_person
from frontdesk.memory.rest.responses import example_response
from frontdesk.operations import ResponseDocs, RestRoute


class RouteFields(TypedDict, total=False):
    """The fields of a route that are as in `RestRoute`."""

    name: str
    query: type[BaseModel]
    body: type[BaseModel]
    body_required: bool
    body_example: Mapping[str, Any]
    status: int


def memory_route(
    method: str,
    path: str,
    *,
    response: Any,  # noqa: ANN401 - any type of an answer
    run: PersonRun | None = None,
    example: object = None,
    responses: ResponseDocs | None = None,
    **fields: Unpack[RouteFields],
) -> RestRoute:
    """A route for the records of the person who calls. `run` takes their scope in the place of the call.

    `example` is an example of the answer.
    """
    docs: ResponseDocs = {} if example is None else example_response(example, fields.get("status", 200))
    return RestRoute(
        method=method,
        path=path,
        response=response,
        run=None if run is None else for_person(run),
        responses={**docs, **(responses or {})},
        detailed_errors=True,
        **fields,
    )
