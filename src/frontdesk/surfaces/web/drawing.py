"""Draws pages from templates: everything escaped, and each with headers that let nothing in from elsewhere."""

from collections.abc import Mapping
from typing import Any, cast

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from frontdesk import __version__
from frontdesk.surfaces.web import marks

SAFETY = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def environment() -> Environment:
    """The templates and the words they may use; a name that is not given is a mistake, not an empty string."""
    made = Environment(
        loader=PackageLoader("frontdesk.surfaces.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        enable_async=False,
    )
    made.filters.update(marks.FILTERS)
    cast("dict[str, Any]", made.globals)["version"] = __version__
    return made


TEMPLATES = environment()


def draw(template: str, context: Mapping[str, Any], status: int = 200) -> HTMLResponse:
    return HTMLResponse(TEMPLATES.get_template(template).render(context), status, SAFETY)
