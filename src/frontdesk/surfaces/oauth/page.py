"""The page that asks a person, written by hand: everything escaped, no script, and nothing loaded from anywhere."""

import base64
import hashlib
import re
from collections.abc import Sequence
from html import escape
from urllib.parse import urlsplit

from starlette.responses import HTMLResponse

from frontdesk.identity.oauth.model import Asked
from frontdesk.identity.rights import SCOPES
from frontdesk.surfaces.oauth.refusals import NO_STORE

STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:10vh auto;padding:0 1rem}"
    "label,input{display:block;width:100%;box-sizing:border-box}input{font:inherit;padding:.5rem;margin:.25rem 0 1rem}"
    "button{font:inherit;padding:.5rem 1.5rem;margin-right:.5rem}li{margin:.25rem 0}"
    ".wrong{border-left:.25rem solid #c33;padding-left:.75rem}"
)
STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
HOST = re.compile(r"[A-Za-z0-9.:\[\]-]+")


def ask(asked: Asked, request_id: str, action: str, wrong: str | None = None, status: int = 200) -> HTMLResponse:
    """Who asks, for what, where it leads; and a place to show who one is."""
    told = f'<p class="wrong" role="alert">{escape(wrong)}</p>' if wrong else ""
    body = (
        f"<h1>Let {escape(asked.client_id)} act for you?</h1>"
        f"<p>It asks to:</p><ul>{_listed(sorted(asked.scopes))}</ul>"
        f"<p>You will be sent back to <strong>{escape(place_of(asked.redirect_uri))}</strong>. "
        "If you did not begin this there, deny it.</p>"
        f'<form method="post" action="{escape(action)}">'
        f'<input type="hidden" name="request" value="{escape(request_id)}">'
        f"{told}"
        '<label for="credential">Your key or token</label>'
        '<input id="credential" name="credential" type="password" autocomplete="off" spellcheck="false" '
        "required autofocus>"
        '<button name="decision" value="allow">Allow</button>'
        '<button name="decision" value="deny" formnovalidate>Deny</button>'
        "</form>"
    )
    return _page("Log in", body, f"'self' {_source(asked.redirect_uri)}", status)


def problem(message: str, status: int) -> HTMLResponse:
    """What went wrong, where there is nobody to send a person back to."""
    return _page("This does not work", f"<h1>This does not work</h1><p>{escape(message)}.</p>", "'none'", status)


def place_of(redirect_uri: str) -> str:
    """Where an address leads, as a person reads it."""
    found = urlsplit(redirect_uri)
    return found.netloc if found.scheme in {"http", "https"} else f"the app that opens {found.scheme}: links"


def _listed(scopes: Sequence[str]) -> str:
    return "".join(f"<li>{escape(SCOPES[scope])} <small>({escape(scope)})</small></li>" for scope in scopes)


def _source(redirect_uri: str) -> str:
    """The address as a policy names it: browsers hold a form to it also where the answer leads on to."""
    found = urlsplit(redirect_uri)
    return f"{found.scheme}://{found.netloc}" if HOST.fullmatch(found.netloc) else f"{found.scheme}:"


def _page(title: str, body: str, form_action: str, status: int) -> HTMLResponse:
    policy = (
        f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; form-action {form_action}; "
        "base-uri 'none'; frame-ancestors 'none'"
    )
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} · Frontdesk</title><style>{STYLE}</style></head>"
    )
    headers = {
        **NO_STORE,
        "content-security-policy": policy,
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
    }
    return HTMLResponse(f"{head}<body><main>{body}</main></body></html>", status, headers)
