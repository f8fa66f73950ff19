"""Renders pages: template filters, the template environment, and responses with security headers."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from frontdesk import __version__
from frontdesk.app import App
from frontdesk.errors import (
    Conflict,
    Denied,
    FrontdeskError,
    IdentityError,
    Invalid,
    NotFound,
    RateLimited,
    Unauthenticated,
    Unavailable,
    Unstorable,
)
from frontdesk.interfaces.http.context import RequestContext, request_context
from frontdesk.interfaces.web.model import SECTIONS, FileDownload, PageContent, PageRedirect, section_path
from frontdesk.interfaces.web.sessions import (
    FORM_COOKIE,
    MESSAGE_COOKIE,
    MESSAGE_SECONDS,
    BrowserCookies,
    new_form_token,
    pack_text,
    unpack_text,
)

TIME_UNITS = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"), (float("inf"), 86_400, "d"))
SHORT_LENGTH = 200
NO_VALUE = "\u2013"
LONG_LENGTH = 2_000


def relative_time(at: datetime | None, now: datetime | None = None) -> Markup:
    """A relative time such as `3 min ago`, with the exact time on hover."""
    if at is None:
        return Markup('<span class="faint">never</span>')
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    exact = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.isoformat(), exact, time_between(at, now or datetime.now(UTC))
    )


def time_between(at: datetime, now: datetime) -> str:
    """The time between two moments, in its largest unit: `3 min ago`, `in 2 h`."""
    seconds = (at - now).total_seconds()
    most, unit, name = next(step for step in TIME_UNITS if abs(seconds) < step[0])
    del most
    count = round(abs(seconds) / unit)
    if count == 0:
        return "now"
    return f"in {count} {name}" if seconds > 0 else f"{count} {name} ago"


def format_duration(microseconds: float | None) -> str:
    if microseconds is None:
        return NO_VALUE
    if microseconds < 1_000:
        return f"{microseconds:.0f} µs"
    if microseconds < 1_000_000:
        return f"{microseconds / 1_000:.1f} ms"
    return f"{microseconds / 1_000_000:.1f} s"


def format_number(value: float | None) -> str:
    return NO_VALUE if value is None else f"{value:,}"


def shorten(text: object, most: int = SHORT_LENGTH) -> str:
    """The text on one line, shortened to `most` characters."""
    said = " ".join(str(text).split())
    return said if len(said) <= most else f"{said[: most - 1]}…"


def full_text(text: object, most: int = LONG_LENGTH) -> Markup:
    """A text with its line breaks. A long text is cut, with a control that shows all of it."""
    said = str(text)
    if len(said) <= most:
        return Markup('<div class="text" dir="auto">{}</div>').format(said)
    return Markup(
        '<div class="text" dir="auto">{}…</div><details><summary>all {} characters</summary>'
        '<div class="text" dir="auto">{}</div></details>'
    ).format(said[:most], f"{len(said):,}", said[: 50 * most])


def copyable_id(identifier: object, most: int = 44) -> Markup:
    """An id that a click copies. A long id is shown shortened and copied in full."""
    said = str(identifier)
    return Markup('<code class="id" tabindex="0" data-copy="{}" title="Copy {}">{}</code>').format(
        said, said, shorten(said, most)
    )


def state_badge(word: object) -> Markup:
    """A badge whose colour depends on the word."""
    said = str(word)
    return Markup('<span class="badge {}">{}</span>').format(f"is-{_slug(said)}", said)


def json_block(value: object) -> Markup:
    """A value as indented JSON."""
    return Markup("<pre>{}</pre>").format(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def _slug(text: str) -> str:
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in text.lower())[:30]


FILTERS: Mapping[str, Callable[..., Any]] = {
    "when": relative_time,
    "duration": format_duration,
    "number": format_number,
    "short": shorten,
    "whole": full_text,
    "code": copyable_id,
    "state": state_badge,
    "as_json": json_block,
    "esc": escape,
}

SECURITY_HEADERS = {
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


def build_environment() -> Environment:
    """The templates with their filters. An undefined name raises an error."""
    made = Environment(
        loader=PackageLoader("frontdesk.interfaces.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        enable_async=False,
    )
    made.filters.update(FILTERS)
    cast("dict[str, Any]", made.globals)["version"] = __version__
    return made


TEMPLATES = build_environment()


def render_page(template: str, context: Mapping[str, Any], status: int = 200) -> HTMLResponse:
    return HTMLResponse(TEMPLATES.get_template(template).render(context), status, SECURITY_HEADERS)


# Narrower errors come first.
ERROR_STATUSES: tuple[tuple[type[FrontdeskError], int], ...] = (
    (Unauthenticated, 401),
    (Denied, 403),
    (RateLimited, 429),
    (NotFound, 404),
    (Conflict, 409),
    (Invalid, 400),
    (Unstorable, 400),
    (IdentityError, 400),
    (Unavailable, 503),
    (FrontdeskError, 500),
)


def status_of(error: FrontdeskError) -> int:
    return next(status for kind, status in ERROR_STATUSES if isinstance(error, kind))


SEE_OTHER = 303
# Characters that are replaced in file names.
UNSAFE_IN_FILE_NAME = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class BrowserExchange:
    """One request of a browser, its cookies, and the token that forms on its pages carry."""

    request: Request
    context: RequestContext
    jar: BrowserCookies
    token: str

    @classmethod
    def of_request(cls, app: App, request: Request) -> "BrowserExchange":
        context = request_context(request.scope)
        jar = BrowserCookies.of(app.settings, context)
        return cls(request, context, jar, jar.read(FORM_COOKIE) or new_form_token())

    def respond(self, found: PageContent | PageRedirect | FileDownload) -> Response:
        match found:
            case PageContent(template, title, context, status):
                return self._kept(render_page(template, {**self._frame(title), **context}, status))
            case PageRedirect(to, said):
                return self.redirect(to, said)
            case FileDownload(content, name, media_type):
                called = UNSAFE_IN_FILE_NAME.sub("-", name)
                headers = {"content-disposition": f'attachment; filename="{called}"'}
                return StreamingResponse(content, media_type=media_type, headers=headers)

    def redirect(self, to: str, text: str = "") -> Response:
        """Redirect to another page, with a message to show there."""
        answer = RedirectResponse(to, SEE_OTHER)
        if text:
            self.jar.store(answer, MESSAGE_COOKIE, pack_text(text), MESSAGE_SECONDS)
        return self._kept(answer)

    def refuse(self, text: str, status: int) -> Response:
        return self.respond(PageContent("refused.html", "This does not work", {"told": text}, status))

    def _kept(self, answer: Response) -> Response:
        if self.jar.read(FORM_COOKIE) is None:
            self.jar.store(answer, FORM_COOKIE, self.token)
        if answer.status_code != SEE_OTHER and self.jar.read(MESSAGE_COOKIE) is not None:
            self.jar.delete(answer, MESSAGE_COOKIE)
        return answer

    def _frame(self, title: str) -> dict[str, object]:
        """The values that every page needs."""
        path = self.request.scope["path"]
        return {
            "title": title,
            "sections": SECTIONS,
            "path": path,
            "here": section_path(path),
            "address": self._address(path),
            "form_token": self.token,
            "said": unpack_text(self.jar.read(MESSAGE_COOKIE)),
            "signed_in": self.context.credential is not None,
            "now": datetime.now(UTC),
        }

    def _address(self, path: str) -> Callable[..., str]:
        """A function that returns the address of this page with a changed query. None removes a parameter."""
        query = self.request.query_params

        def address(**changes: object) -> str:
            said = {**query, **{name: value for name, value in changes.items() if value is not None}}
            left = {name: str(value) for name, value in said.items() if changes.get(name, "") is not None}
            return f"{path}?{urlencode(left)}" if left else path

        return address
