"""What a browser keeps for the pages: a session's id, a token against forged forms, and what was just done."""

import base64
import binascii
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import cookie_parser
from starlette.responses import Response

from frontdesk.settings import Settings
from frontdesk.surfaces.visit import Visit

SESSION = "frontdesk_session"
FORGERY = "frontdesk_form"
SAID = "frontdesk_said"
ERRAND = "frontdesk_errand"
SAID_SECONDS = 30
# In bytes.
LONGEST_SAID = 1200
# Browsers take a name like this over TLS alone, and from nobody but the very host that gets it back.
OVER_TLS = "__Host-"


@dataclass(frozen=True, slots=True)
class Jar:
    """The cookies of one browser, out of reach of scripts and never sent along from another site.

    `secure`: it came over TLS, and what it keeps goes back no other way.
    """

    said: Mapping[str, str]
    secure: bool

    @classmethod
    def of(cls, settings: Settings, visit: Visit) -> "Jar":
        # A proxy's word is enough here: it can make this stricter, and nothing looser.
        passed_on = visit.said.get("x-forwarded-proto", "").partition(",")[0].strip().lower() == "https"
        over_tls = passed_on or (settings.public_url or "").lower().startswith("https:")
        return cls(cookie_parser(visit.said.get("cookie", "")), over_tls)

    def kept(self, name: str) -> str | None:
        """What the browser kept under this name."""
        return self.said.get(self._full(name)) or None

    def keep(
        self, response: Response, name: str, value: str, seconds: int | None = None, *, led_back: bool = False
    ) -> None:
        """Have it kept so long, or until the browser is closed.

        `led_back`: it comes along also when another site leads the browser back here.
        """
        response.set_cookie(
            self._full(name),
            value,
            max_age=seconds,
            path="/",
            httponly=True,
            secure=self.secure,
            samesite="lax" if led_back else "strict",
        )

    def drop(self, response: Response, name: str) -> None:
        response.delete_cookie(self._full(name), path="/", httponly=True, secure=self.secure, samesite="strict")

    def _full(self, name: str) -> str:
        return f"{OVER_TLS}{name}" if self.secure else name


def new_form_token() -> str:
    return secrets.token_urlsafe(24)


def same_token(one: str | None, other: str | None) -> bool:
    return bool(one) and bool(other) and hmac.compare_digest((one or "").encode(), (other or "").encode())


def packed(text: str, longest: int = LONGEST_SAID) -> str:
    """A sentence as a cookie can hold it, or as much of its beginning as fits."""
    begun = text.encode(errors="replace")[:longest].decode(errors="ignore")
    return base64.urlsafe_b64encode(begun.encode()).decode().rstrip("=")


def unpacked(text: str | None, longest: int = LONGEST_SAID) -> str | None:
    if not text or len(text) > (longest * 4 + 2) // 3:
        return None
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, ValueError):
        return None
