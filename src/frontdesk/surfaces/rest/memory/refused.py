"""How requests are refused, as the description tells it."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from frontdesk.memory.model import TimeEntry
from frontdesk.surfaces.rest.shapes import REFUSED, Problem

Responses = dict[int | str, dict[str, Any]]
PROBLEM = {"$ref": f"#/components/schemas/{Problem.__name__}"}
TOLD: Mapping[int, tuple[str, Mapping[str, Any]]] = {
    400: (
        "What was sent does not fit, or cannot be done so.",
        {"error": "Validation failed", "details": [{"field": "body", "errors": ["content.title: Field required"]}]},
    ),
    401: ("No credential, or one that does not hold.", {"error": "Authentication required"}),
    403: (
        "The credential may not do this.",
        {"error": "Insufficient permissions", "required_scopes": ["tasks.read"], "success": False},
    ),
    404: ("It is not there, or is somebody else's.", {"error": "Task not found"}),
    408: ("The body did not arrive in time.", {"error": "The body did not arrive within 30 s"}),
    409: ("It cannot be done as things stand.", {"error": "There is a category 'Work' already"}),
    413: ("The body is too large.", {"error": "The body is too large; 4 MiB is the limit"}),
    429: ("Too many requests; `Retry-After` says when to come again.", {"error": "Too many requests"}),
    503: ("A part that this depends on does not answer.", {"error": "The database does not answer"}),
}


class TimerProblem(Problem):
    """Another timer runs."""

    running: TimeEntry | None = Field(None, description="The entry of the timer that runs.")


def _told(status: int) -> dict[str, Any]:
    """With a mere pointer to the schema: a model at each status of each route takes seconds to set up."""
    says, example = TOLD[status]
    return {"description": says, "content": {"application/json": {"schema": PROBLEM, "example": example}}}


# Of any route of the room.
REFUSALS: Responses = {**REFUSED, **{status: _told(status) for status in TOLD}}
TIMER_REFUSALS: Responses = {409: {"model": TimerProblem, "description": "Another timer runs: `running` says which."}}
