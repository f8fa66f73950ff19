"""Shows keys, denied calls and trusted issuers; creates, rotates and revokes keys."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from urllib.parse import urlencode

from frontdesk.errors import IdentityError, Invalid, Unstorable
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.model import KEY_CREDENTIAL_PREFIX, ClaimedIds
from frontdesk.identity.rights import MEMORY_SCOPES, SCOPES
from frontdesk.interfaces.web.agent_lookup import agent_names
from frontdesk.interfaces.web.model import ActionRoute, PageContent, PageRedirect, PageRequest, PageRoute, StreamRoute
from frontdesk.journal.model import JournalEntry

LIFETIMES: Mapping[str, str] = {
    "90": "90 days",
    "7": "a week",
    "30": "30 days",
    "365": "a year",
    "": "for ever",
}
OVERLAPS: Mapping[str, str] = {"24": "another day", "1": "another hour", "168": "another week", "0": "not at all"}
SCOPE_PREFIX = "scope:"
EVERYTHING = "everything"


def parse_lifetime(text: str) -> timedelta | None:
    if text not in LIFETIMES:
        raise Invalid("A key works for a week, 30 days, 90 days, a year, or for ever")
    return timedelta(days=int(text)) if text else None


def parse_overlap(text: str) -> timedelta:
    if text not in OVERLAPS:
        raise Invalid("The old key works on for an hour, a day, a week, or not at all")
    return timedelta(hours=int(text))


def parse_scopes(form: Mapping[str, str]) -> frozenset[str] | None:
    """The ticked scopes. None allows everything, which must be chosen explicitly."""
    if form.get("limits") == EVERYTHING:
        return None
    ticked = frozenset(name.removeprefix(SCOPE_PREFIX) for name in form if name.startswith(SCOPE_PREFIX))
    if not ticked:
        raise Invalid("Tick what the key may do, or choose that it may do everything")
    return ticked


KEYS_SHOWN = 50
DENIALS_SHOWN = 50
DENIALS_AT_FIRST = 10
AGENTS_SHOWN = 20
# How many of the newest rows are searched.
ROWS_LOOKED_AT = 2_000
DAY = timedelta(days=1)
KEY_FILTERS: Mapping[str, bool | None] = {"working": True, "ended": False, "all": None}
INSTALLATION_SCOPES = {scope: told for scope, told in SCOPES.items() if scope not in MEMORY_SCOPES}
# The entry for denials of unidentified callers.
UNKNOWN_REASON = "Denied, unknown"
# The journal's reasons, each with its meaning and its solution.
REASONS = {
    "Unauthenticated": "It sent no key or token, or an invalid one. Give it a working key.",
    "MissingScope": "Its key lacks the scope that this needs. Create a key with that scope.",
    "Denied": "It is identified, but may not do this.",
    UNKNOWN_REASON: "It was refused before it was identified: it may not do this, or not under the name that it gave.",
    "AgentIdMismatch": "Header and parameter named different agents: leave the parameter out.",
    "InvalidAgentId": "It named itself by an invalid agent id.",
    "UnknownAgent": "The agent host has no agent with that id; STRICT_AGENT_ID_VALIDATION checks this.",
    "RateLimited": "It called more often than FRONTDESK_RATE_AGENT or FRONTDESK_RATE_USER allow.",
    "misdirected": "It used a host name that this server does not answer to; add it to FRONTDESK_ALLOWED_HOSTS.",
    "forbidden_origin": "A web page of another origin called; add it to FRONTDESK_ALLOWED_ORIGINS if it may.",
}


async def show_access(request: PageRequest) -> PageContent:
    # A link may prefill the agent and the person of a key, but not its scopes.
    return await access_page(
        request, {name: request.query[name] for name in ("agent", "user") if name in request.query}
    )


async def access_page(request: PageRequest, wanted: Mapping[str, str], wrong: str = "") -> PageContent:
    """The page with the form for a new key. `wanted` fills the form in, and `wrong` is shown beside it."""
    which = request.query.get("keys", "working")
    found = await _list_keys(request, which)
    shown, more = found[:KEYS_SHOWN], len(found) > KEYS_SHOWN
    denied = await _list_denials(request, None, DENIALS_AT_FIRST)
    by_parameter = await request.app.journal.agent_ids_by_parameter(ROWS_LOOKED_AT, AGENTS_SHOWN)
    shown_agents = [one.agent_id for one in (*shown, *by_parameter, *(entry for _, entry in denied))]
    settings = request.app.settings
    context = {
        "keys": shown,
        "which": which,
        "older": f"/access?{urlencode({'keys': which, 'before': shown[-1].id})}" if more else "",
        "begun": "before" in request.query,
        "mine": (request.caller.credential_id or "").removeprefix(KEY_CREDENTIAL_PREFIX),
        "lasting": LIFETIMES,
        "overlaps": OVERLAPS,
        "installation_scopes": INSTALLATION_SCOPES,
        "of_a_person": MEMORY_SCOPES,
        "wanted": wanted,
        "wrong": wrong,
        "denied": denied[:DENIALS_AT_FIRST],
        "denied_more": len(denied) > DENIALS_AT_FIRST,
        "why": _explain_denial,
        "claims": claimed_ids,
        "names": await agent_names(request.app, shown_agents),
        "by_parameter": by_parameter,
        "looked_at": ROWS_LOOKED_AT,
        "guarded": settings.auth_required,
        "exposed": settings.exposed,
        "issuers": settings.trusted_issuers,
        "clients": settings.login_clients,
    }
    return PageContent("access/access.html", "Access", context, 400 if wrong else 200)


async def show_denied(request: PageRequest) -> PageContent:
    """The denied calls of the last day, page by page."""
    before = request.query.get("before")
    if before is not None and not (before.isascii() and before.isdigit() and len(before) < 19):
        raise Invalid("This is not a position in the list; start at its beginning")
    rows = await _list_denials(request, int(before) if before else None, DENIALS_SHOWN)
    shown = rows[:DENIALS_SHOWN]
    older = shown[-1][0] if len(rows) > DENIALS_SHOWN else None
    names = await agent_names(request.app, [entry.agent_id for _, entry in shown])
    context = {
        "denied": shown,
        "older": older,
        "begun": before is not None,
        "why": _explain_denial,
        "claims": claimed_ids,
        "names": names,
    }
    return PageContent("access/denied.html", "Denied calls", context)


async def _list_keys(request: PageRequest, which: str) -> Sequence[ApiKey]:
    if which not in KEY_FILTERS:
        raise Invalid(f"Keys are listed as: {', '.join(KEY_FILTERS)}")
    before = request.query.get("before")
    return await request.app.keys.newest(request.now, KEYS_SHOWN + 1, working=KEY_FILTERS[which], before=before)


async def _list_denials(request: PageRequest, before: int | None, most: int) -> Sequence[tuple[int, JournalEntry]]:
    """The denials of the last day, one more than a page shows."""
    rows = await request.app.journal.denials(before, most + 1)
    return [(number, entry) for number, entry in rows if entry.at > request.now - DAY]


def _explain_denial(entry: JournalEntry) -> str:
    """The meaning of a row's reason, if it is known."""
    named = entry.claimed is not None and entry.claimed != ClaimedIds(credential=entry.claimed.credential)
    known = entry.agent_id or (entry.user_id and not named)
    return REASONS.get(UNKNOWN_REASON if entry.reason == "Denied" and not known else entry.reason or "", "")


def claimed_ids(entry: JournalEntry) -> Sequence[Mapping[str, str]]:
    """The agent ids that a refused request named, with their sources."""
    found = asdict(entry.claimed) if entry.claimed is not None else {}
    return [{"name": name, "text": claim} for name, claim in found.items() if claim is not None]


async def create_key(request: PageRequest) -> PageContent:
    """Create a key. Errors are shown in the form."""
    form = request.form
    try:
        key, text = await request.app.identity.create_key(
            name=form.get("name", "").strip(),
            agent_id=form.get("agent", "").strip() or None,
            user_id=form.get("user", "").strip() or None,
            scopes=parse_scopes(form),
            lifetime=parse_lifetime(form.get("lasting", "")),
        )
    except (Invalid, IdentityError, Unstorable) as error:
        return await access_page(request, form, error.full_message)
    return PageContent("access/made.html", "A new key", {"key": key, "text": text, "old": None})


async def rotate_key(request: PageRequest) -> PageContent:
    old_id = request.path_params["id"]
    key, text = await request.app.identity.rotate_key(old_id, parse_overlap(request.form.get("overlap", "")))
    old = await request.app.keys.get(old_id)
    return PageContent("access/made.html", "A new key", {"key": key, "text": text, "old": old})


async def revoke_key(request: PageRequest) -> PageRedirect:
    key_id = request.path_params["id"]
    await request.app.identity.revoke_key(key_id)
    return PageRedirect("/access", f"Key {key_id} no longer works.")


ACCESS: tuple[PageRoute | ActionRoute | StreamRoute, ...] = (
    PageRoute("/access", show_access),
    PageRoute("/access/denied", show_denied),
    ActionRoute("/access/keys", create_key),
    ActionRoute("/access/keys/{id}/rotate", rotate_key),
    ActionRoute("/access/keys/{id}/revoke", revoke_key),
)
