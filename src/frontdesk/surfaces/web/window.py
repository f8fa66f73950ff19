"""What a browser is shown, whatever it asked for: a page in its frame, a refusal, or where to go next."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from frontdesk.app import App
from frontdesk.surfaces.visit import Visit, visit_of
from frontdesk.surfaces.web import cookies, places
from frontdesk.surfaces.web.cookies import Jar
from frontdesk.surfaces.web.drawing import draw
from frontdesk.surfaces.web.model import Done, Sent, Shown
from frontdesk.surfaces.web.sections import SECTIONS

SEE_OTHER = 303
# What has no place in the name of a file, whoever it is named after.
NO_NAME = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class Window:
    """One request of a browser, what the browser keeps, and the token that forms on its pages carry."""

    request: Request
    visit: Visit
    jar: Jar
    token: str

    @classmethod
    def on(cls, app: App, request: Request) -> "Window":
        visit = visit_of(request.scope)
        jar = Jar.of(app.settings, visit)
        return cls(request, visit, jar, jar.kept(cookies.FORGERY) or cookies.new_form_token())

    def answer(self, found: Shown | Done | Sent) -> Response:
        match found:
            case Shown(template, title, context, status):
                return self._kept(draw(template, {**self._frame(title), **context}, status))
            case Done(to, said):
                return self.lead(to, said)
            case Sent(content, name, media_type):
                called = NO_NAME.sub("-", name)
                headers = {"content-disposition": f'attachment; filename="{called}"'}
                return StreamingResponse(content, media_type=media_type, headers=headers)

    def lead(self, to: str, said: str = "") -> Response:
        """Somewhere else, with a sentence to be said there."""
        answer = RedirectResponse(to, SEE_OTHER)
        if said:
            self.jar.keep(answer, cookies.SAID, cookies.packed(said), cookies.SAID_SECONDS)
        return self._kept(answer)

    def refuse(self, told: str, status: int) -> Response:
        return self.answer(Shown("refused.html", "This does not work", {"told": told}, status))

    def _kept(self, answer: Response) -> Response:
        if self.jar.kept(cookies.FORGERY) is None:
            self.jar.keep(answer, cookies.FORGERY, self.token)
        if answer.status_code != SEE_OTHER and self.jar.kept(cookies.SAID) is not None:
            self.jar.drop(answer, cookies.SAID)
        return answer

    def _frame(self, title: str) -> dict[str, object]:
        """What every page is given besides its own."""
        path = self.request.scope["path"]
        return {
            "title": title,
            "sections": SECTIONS,
            "path": path,
            "here": places.section(path),
            "address": self._address(path),
            "form_token": self.token,
            "said": cookies.unpacked(self.jar.kept(cookies.SAID)),
            "signed_in": self.visit.credential is not None,
            "now": datetime.now(UTC),
        }

    def _address(self, path: str) -> Callable[..., str]:
        """The address of this page with some of what follows it changed; None takes it away."""
        query = self.request.query_params

        def address(**changes: object) -> str:
            said = {**query, **{name: value for name, value in changes.items() if value is not None}}
            left = {name: str(value) for name, value in said.items() if changes.get(name, "") is not None}
            return f"{path}?{urlencode(left)}" if left else path

        return address
