"""Which hosts and origins are answered: what keeps a web page from reaching a server on its reader's machine."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from frontdesk.settings import Settings, is_loopback

EVERY_ADDRESS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - recognised, not bound


@dataclass(frozen=True, slots=True)
class Turned:
    """Someone who is turned away at the doorstep."""

    status: int
    code: str
    message: str


# Another port of this machine is the same site, and somebody else.
ELSEWHERE = frozenset({"cross-site", "same-site"})
WRONG_HOST = Turned(421, "misdirected", "Requests for this Host are not answered; add it to FRONTDESK_ALLOWED_HOSTS")
WRONG_ORIGIN = Turned(403, "forbidden_origin", "Pages of this Origin may not call; add it to FRONTDESK_ALLOWED_ORIGINS")
NOT_OURS = Turned(
    403,
    "forbidden_origin",
    "These pages answer to themselves alone; behind a proxy set FRONTDESK_PUBLIC_URL to the address in the browser",
)


@dataclass(frozen=True, slots=True)
class Doorstep:
    """The names this server goes by, and the origins whose pages may call it."""

    hosts: frozenset[str]
    origins: frozenset[str]
    any_loopback: bool
    any_address: bool
    # The origin that browsers know this server by, where it was named.
    public: str = ""

    @classmethod
    def of(cls, settings: Settings) -> "Doorstep":
        public = urlsplit(settings.public_url or "")
        hosts = {
            settings.host.lower(),
            f"[{settings.host.lower()}]",
            *(host.lower() for host in settings.allowed_hosts),
        }
        origins = {origin.lower() for origin in settings.allowed_origins}
        if settings.public_url:
            hosts |= {public.netloc.lower(), (public.hostname or "").lower()}
            origins.add(f"{public.scheme}://{public.netloc}".lower())
        everywhere = settings.host in EVERY_ADDRESS
        known_by = f"{public.scheme}://{public.netloc}".lower() if settings.public_url else ""
        return cls(frozenset(hosts), frozenset(origins), everywhere or is_loopback(settings.host), everywhere, known_by)

    def turns_away(self, headers: Mapping[str, str], *, own_alone: bool = False) -> Turned | None:
        """Why a request with these headers is not let in, if it is not; `own_alone`: other origins never are."""
        host = headers.get("host", "").lower()
        if not self._answers_host(host):
            return WRONG_HOST
        origin = headers.get("origin")
        if own_alone and _is_fetched_elsewhere(headers):
            return NOT_OURS
        if origin is None:
            return None
        if own_alone:
            return None if self._is_own(origin.lower(), host) else NOT_OURS
        return None if self._answers_origin(origin.lower()) else WRONG_ORIGIN

    def _answers_host(self, host: str) -> bool:
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if host in self.hosts or name in self.hosts or (self.any_loopback and is_loopback(name)):
            return True
        # Where every address is listened on, a bare address is as good as a name, and no page can rebind it.
        return self.any_address and _is_address(name)

    def _is_own(self, origin: str, host: str) -> bool:
        """Another port of this machine is somebody else, though cookies do not tell the two apart."""
        if origin == self.public:
            return True
        scheme, _, place = origin.partition("://")
        return scheme in ("http", "https") and place == host and place != self.public.partition("://")[2]

    def _answers_origin(self, origin: str) -> bool:
        if origin in self.origins:
            return True
        try:
            return self.any_loopback and is_loopback(urlsplit(origin).hostname or "")
        except ValueError:
            return False


def _is_fetched_elsewhere(headers: Mapping[str, str]) -> bool:
    """Whether another site's page loads this into itself, as browsers tell; a link or an issuer may lead here."""
    return headers.get("sec-fetch-site") in ELSEWHERE and headers.get("sec-fetch-mode") != "navigate"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
