"""`frontdesk keys`: hand out, list, rotate and revoke API keys."""

import sys
from datetime import UTC, datetime
from typing import Annotated

from cyclopts import App as Command
from cyclopts import Parameter

from frontdesk.identity.keys import ApiKey
from frontdesk.surfaces.cli.running import with_app
from frontdesk.surfaces.cli.words import duration, table

command = Command(name="keys", help="API keys: each speaks for one agent, one user, or both.")


@command.command
def create(
    *,
    agent: str | None = None,
    user: str | None = None,
    name: str = "",
    scope: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    expires: str | None = None,
) -> None:
    """Make a key and print it, once.

    Parameters
    ----------
    agent
        The agent it speaks for; '*' for a platform that is trusted to name its agents itself.
    user
        The person it acts for.
    name
        What you will know it by in the list.
    scope
        What it may do, repeated; without any it is not limited.
    expires
        How long it works, e.g. 90d or 12h; for ever when left out.
    """
    lifetime = duration(expires) if expires else None
    key, text = with_app(
        lambda app: app.identity.create_key(
            name=name, agent_id=agent, user_id=user, scopes=frozenset(scope) or None, lifetime=lifetime
        )
    )
    _hand_out(key, text)


@command.command(name="list")
def show() -> None:
    """List the keys, without their secrets."""
    keys = with_app(lambda app: app.keys.list())
    if not keys:
        print("No keys yet. Make one: frontdesk keys create --agent AGENT")
        return
    rows = [
        (
            key.id,
            key.name,
            key.agent_id or "-",
            key.user_id or "-",
            _scopes(key),
            _state(key),
            _when(key.last_used_at),
        )
        for key in keys
    ]
    print(table(("id", "name", "agent", "user", "scopes", "state", "last used"), rows))


@command.command
def rotate(key_id: str, *, overlap: str = "24h") -> None:
    """Replace a key by a new one with the same rights; the old one works on for a while.

    Parameters
    ----------
    key_id
        The key's id, as listed.
    overlap
        How long the old key still works.
    """
    lasting = duration(overlap)
    key, text = with_app(lambda app: app.identity.rotate_key(key_id, lasting))
    _hand_out(key, text)


@command.command
def revoke(key_id: str) -> None:
    """End a key now."""
    with_app(lambda app: app.identity.revoke_key(key_id))
    print(f"Key {key_id} no longer works.")


def _hand_out(key: ApiKey, text: str) -> None:
    # The key alone goes to standard output, so that a script can take it from there.
    print(text)
    print(f"Key {key.id}: keep it now, it is not shown again.", file=sys.stderr)


def _scopes(key: ApiKey) -> str:
    return "all" if key.scopes is None else " ".join(sorted(key.scopes))


def _state(key: ApiKey) -> str:
    if key.revoked_at:
        return "revoked"
    if key.expires_at and not key.works_at(datetime.now(UTC)):
        return "expired"
    return f"until {_when(key.expires_at)}" if key.expires_at else "works"


def _when(at: datetime | None) -> str:
    return at.strftime("%Y-%m-%d %H:%M UTC") if at else "-"
