"""What the page shows: keys, denied calls, agents that name themselves by a parameter, and who else is trusted."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from urllib.parse import urlencode

from frontdesk.errors import Invalid
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.model import KEY, Claimed
from frontdesk.identity.rights import MEMORY_SCOPES, SCOPES
from frontdesk.journal.model import Entry
from frontdesk.surfaces.web.model import Asked, Shown
from frontdesk.surfaces.web.names import names_of
from frontdesk.surfaces.web.pages.access.choices import LASTING, OVERLAPS

KEYS_SHOWN = 50
DENIALS_SHOWN = 50
DENIALS_AT_FIRST = 10
AGENTS_SHOWN = 20
# So many of the newest rows are looked at, however many there are.
ROWS_LOOKED_AT = 2_000
DAY = timedelta(days=1)
WHICH: Mapping[str, bool | None] = {"working": True, "ended": False, "all": None}
OF_THE_HOUSE = {scope: told for scope, told in SCOPES.items() if scope not in MEMORY_SCOPES}
# A denial of somebody who stayed unknown.
UNKNOWN = "Denied, unknown"
# What the reasons of the journal mean, and what helps.
REASONS = {
    "Unauthenticated": "It showed no key or token, or one that does not hold. Give it a key that works.",
    "MissingScope": "Its key lacks the scope that this takes. Make it one that carries it.",
    "Denied": "It is known, and may not do this.",
    UNKNOWN: "It was turned away before it was known: it may not do this, or not in the name that it gave.",
    "AgentIdMismatch": "Header and parameter named different agents: leave the parameter out.",
    "InvalidAgentId": "It named itself by what is no agent's id.",
    "UnknownAgent": "The agent host has no agent of that id; STRICT_AGENT_ID_VALIDATION asks it.",
    "RateLimited": "It called more often than FRONTDESK_RATE_AGENT or FRONTDESK_RATE_USER allow.",
    "misdirected": "It used a name that this server does not go by; FRONTDESK_ALLOWED_HOSTS takes more.",
    "forbidden_origin": "A web page of another origin called; FRONTDESK_ALLOWED_ORIGINS takes those that may.",
}


async def access(asked: Asked) -> Shown:
    # A link may say for whom a key is to be, and not what it may do.
    return await page(asked, {name: asked.query[name] for name in ("agent", "user") if name in asked.query})


async def page(asked: Asked, wanted: Mapping[str, str], wrong: str = "") -> Shown:
    """Everything at a glance; with the key that is wanted, as far as it was filled in, and what is wrong with it."""
    which = asked.query.get("keys", "working")
    found = await _keys(asked, which)
    shown, more = found[:KEYS_SHOWN], len(found) > KEYS_SHOWN
    denied = await _denials(asked, None, DENIALS_AT_FIRST)
    by_parameter = await asked.app.journal.by_parameter(ROWS_LOOKED_AT, AGENTS_SHOWN)
    shown_agents = [one.agent_id for one in (*shown, *by_parameter, *(entry for _, entry in denied))]
    settings = asked.app.settings
    context = {
        "keys": shown,
        "which": which,
        "older": f"/access?{urlencode({'keys': which, 'before': shown[-1].id})}" if more else "",
        "begun": "before" in asked.query,
        "mine": (asked.caller.credential_id or "").removeprefix(KEY),
        "lasting": LASTING,
        "overlaps": OVERLAPS,
        "of_the_house": OF_THE_HOUSE,
        "of_a_person": MEMORY_SCOPES,
        "wanted": wanted,
        "wrong": wrong,
        "denied": denied[:DENIALS_AT_FIRST],
        "denied_more": len(denied) > DENIALS_AT_FIRST,
        "why": _why,
        "claims": claims_of,
        "names": await names_of(asked.app, shown_agents),
        "by_parameter": by_parameter,
        "looked_at": ROWS_LOOKED_AT,
        "guarded": settings.auth_required,
        "exposed": settings.exposed,
        "issuers": settings.trusted_issuers,
        "clients": settings.login_clients,
    }
    return Shown("access/access.html", "Access", context, 400 if wrong else 200)


async def denied(asked: Asked) -> Shown:
    """All that was turned away in the last day, a page at a time."""
    before = asked.query.get("before")
    if before is not None and not (before.isascii() and before.isdigit() and len(before) < 19):
        raise Invalid("This is no place in the list; begin at its start")
    rows = await _denials(asked, int(before) if before else None, DENIALS_SHOWN)
    shown = rows[:DENIALS_SHOWN]
    older = shown[-1][0] if len(rows) > DENIALS_SHOWN else None
    names = await names_of(asked.app, [entry.agent_id for _, entry in shown])
    context = {
        "denied": shown,
        "older": older,
        "begun": before is not None,
        "why": _why,
        "claims": claims_of,
        "names": names,
    }
    return Shown("access/denied.html", "Denied calls", context)


async def _keys(asked: Asked, which: str) -> Sequence[ApiKey]:
    if which not in WHICH:
        raise Invalid(f"Keys are listed as: {', '.join(WHICH)}")
    before = asked.query.get("before")
    return await asked.app.keys.newest(asked.now, KEYS_SHOWN + 1, working=WHICH[which], before=before)


async def _denials(asked: Asked, before: int | None, most: int) -> Sequence[tuple[int, Entry]]:
    """Of the last day, and one more than are shown."""
    rows = await asked.app.journal.denials(before, most + 1)
    return [(number, entry) for number, entry in rows if entry.at > asked.now - DAY]


def _why(entry: Entry) -> str:
    """What the reason of a row means, where we know."""
    named = entry.claimed is not None and entry.claimed != Claimed(credential=entry.claimed.credential)
    known = entry.agent_id or (entry.user_id and not named)
    return REASONS.get(UNKNOWN if entry.reason == "Denied" and not known else entry.reason or "", "")


def claims_of(entry: Entry) -> Sequence[Mapping[str, str]]:
    """The agent ids that a refused request named, and by what."""
    found = asdict(entry.claimed) if entry.claimed is not None else {}
    return [{"name": name, "text": claim} for name, claim in found.items() if claim is not None]
