"""Implements `frontdesk keys`: create, import, list, rotate and revoke API keys."""

import sys
from datetime import UTC, datetime
from getpass import getpass
from typing import Annotated

from cyclopts import App as Command
from cyclopts import Parameter

from frontdesk.app import App
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.model import ANY_AGENT
from frontdesk.interfaces.app_runner import local_caller, run_change, run_with_app
from frontdesk.interfaces.cli.output import (
    EMPTY_CELL,
    AsJsonLines,
    Flag,
    Repeated,
    dump_json,
    format_time,
    parse_duration,
    print_list,
    printable_line,
)
from frontdesk.journal.service import CallRecord

KeyId = Annotated[str, Parameter(help="The key's id, as `keys list` shows it.")]
NO_KEYS = "No keys yet. Make one: frontdesk keys create --agent AGENT"

command = Command(name="keys")


@command.command
def create(
    *,
    agent: str | None = None,
    user: str | None = None,
    name: Annotated[str, Parameter(show_default=False)] = "",
    scope: Repeated = (),
    expires: str | None = None,
) -> None:
    """Create a key and print it. It is not shown again.

    frontdesk keys create --agent Clerk --scope tools:call --expires 90d

    Parameters
    ----------
    agent
        The agent that it acts for; '*' for a platform that is trusted to name its agents itself.
    user
        The person it acts for.
    name
        A name for the list.
    scope
        A scope of the key, e.g. tools:call; repeated for several. Without any, it may do everything. An unknown scope
        is answered with the list of scopes.
    expires
        How long it works, e.g. 90d; for ever when left out.
    """
    lifetime = parse_duration(expires) if expires else None

    async def make(app: App, record: CallRecord) -> tuple[ApiKey, str]:
        key, text = await app.identity.create_key(
            name=name, agent_id=agent, user_id=user, scopes=frozenset(scope) or None, lifetime=lifetime
        )
        _record_key(record, key)
        return key, text

    _print_key(*run_change("keys create", make))


@command.command(name="import")
def import_key(
    *,
    user: str,
    name: Annotated[str, Parameter(show_default=False)] = "",
    scope: Repeated = (),
    hashed: Annotated[Flag, Parameter(name="--hash")] = False,
) -> None:
    """Take over a key that a person was given elsewhere: zm_ and 64 hexadecimal digits, on standard input.

    frontdesk keys import --user ann --scope tasks.read < key.txt

    Parameters
    ----------
    user
        The person it acts for.
    name
        A name for the list.
    scope
        A scope it has, e.g. tasks.read; repeated for several. Without any: tasks.read, tasks.write, memories.read and
        memories.write, as where it comes from.
    hashed
        Standard input has the key's SHA-256, as 64 hexadecimal digits, and not the key.
    """
    text = _read_secret("Its SHA-256: " if hashed else "The key: ")

    async def bring(app: App, record: CallRecord) -> ApiKey:
        key = await app.identity.import_key(
            text, hashed=hashed, user_id=user, name=name, scopes=frozenset(scope) or None
        )
        _record_key(record, key)
        return key

    key = run_change("keys import", bring)
    print(f"Key {key.id} works for {printable_line(user)}.")


@command.command(name="list")
def list_keys(*, as_json: AsJsonLines = False) -> None:
    """List the keys, without their secrets."""
    keys = run_with_app(lambda app: app.keys.list())

    def row(key: ApiKey) -> tuple[str, ...]:
        return (
            key.id,
            key.name,
            key.agent_id or EMPTY_CELL,
            key.user_id or EMPTY_CELL,
            "all" if key.scopes is None else " ".join(sorted(key.scopes)),
            _describe_lifetime(key),
            format_time(key.last_used_at),
        )

    head = ("id", "name", "agent", "user", "scopes", "state", "last used")
    print_list(keys, head, row, empty=NO_KEYS, as_json=as_json, to_json=_key_json)


@command.command
def rotate(key_id: KeyId, /, *, overlap: Annotated[str, Parameter(name=("--works-on", "--overlap"))] = "24h") -> None:
    """Replace a key by a new one with the same rights. The old key works for a while longer.

    Parameters
    ----------
    overlap
        How long the old key still works.
    """
    lasting = parse_duration(overlap)

    async def replace(app: App, record: CallRecord) -> tuple[ApiKey, str]:
        key, text = await app.identity.rotate_key(key_id, lasting)
        _record_key(record, key, f"{key_id} ")
        return key, text

    _print_key(*run_change("keys rotate", replace))


@command.command
def revoke(key_id: KeyId, /) -> None:
    """Revoke a key now."""

    async def end(app: App, record: CallRecord) -> None:
        await app.identity.revoke_key(key_id)
        record.action += f" {key_id}"

    run_change("keys revoke", end)
    print(f"Key {printable_line(key_id)} no longer works.")


def _record_key(record: CallRecord, key: ApiKey, before: str = "") -> None:
    """Add the id to the journal entry once the key exists: a person may type a whole key instead of its id."""
    record.action += f" {before}{key.id}"
    record.caller = local_caller(agent=None if key.agent_id == ANY_AGENT else key.agent_id, user=key.user_id)


def _read_secret(question: str) -> str:
    """Read a secret from standard input, because arguments appear in process lists and shell histories."""
    return (getpass(question) if sys.stdin.isatty() else sys.stdin.readline()).strip()


def _print_key(key: ApiKey, text: str) -> None:
    # Only the key goes to standard output, for scripts.
    print(text)
    print(f"Key {key.id}: keep it now, it is not shown again.", file=sys.stderr)


def _key_state(key: ApiKey) -> str:
    return key.state_at(datetime.now(UTC))


def _describe_lifetime(key: ApiKey) -> str:
    state = _key_state(key)
    return f"until {format_time(key.expires_at)}" if state == "works" and key.expires_at else state


def _key_json(key: ApiKey) -> str:
    facts = {
        "id": key.id,
        "name": key.name,
        "agent_id": key.agent_id,
        "user_id": key.user_id,
        "scopes": None if key.scopes is None else sorted(key.scopes),
        "state": _key_state(key),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "last_used_at": key.last_used_at,
        "replaces": key.replaces,
    }
    return dump_json(facts)
