"""Implements the commands of `frontdesk memory` for all of a person's records.

These are export, import, erase, time zone, insights and people.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, cast

from cyclopts import Parameter

from frontdesk.app import App
from frontdesk.errors import Invalid
from frontdesk.interfaces.app_runner import local_caller, run_change, run_with_app
from frontdesk.interfaces.cli.output import (
    Flag,
    JsonFlag,
    Limit,

    dump_json,
    format_table,
    format_time,
    number_up_to,
    printable_line,
)
from frontdesk.interfaces.cli.person import (
    DEFAULT_USER,
    PersonContext, UserOption,
    change_for_person,
    require_user_id,
    run_for_person,
)
from frontdesk.journal.service import CallRecord
from frontdesk.memory.insights import InsightRange
from frontdesk.memory.model import PersonScope, PersonSummary
from frontdesk.memory.people import ErasedRecords, PeopleDirectory

NO_PEOPLE = "Nobody has stored anything yet. Start: frontdesk memory add TEXT"


def insights(
    *,
    date_range: Annotated[InsightRange, Parameter(name="--range")] = InsightRange.WEEK,
    zone: str | None = None,
    user: UserOption = DEFAULT_USER,
    as_json: JsonFlag = False,
) -> None:
    """Summarize the days up to today: what was done and noted, when, and how it felt.

    Parameters
    ----------
    date_range
        How far back to look, today included.
    zone
        The time zone in which days are meant; the person's own when left out.
    user
        The person whose days they are.
    as_json
        Print one JSON object.
    """
    found = run_for_person(user, lambda acting: acting.memory.timeline.insights(acting.scope, date_range, zone))
    if as_json:
        print(dump_json(asdict(found)))
        return
    print(f"{found.first_day} to {found.last_day} in {found.timezone}")
    for sentence in found.sentences:
        print(printable_line(sentence))


def zone(name: str | None = None, /, *, user: UserOption = DEFAULT_USER) -> None:
    """Show or set a person's time zone, which applies to days and times without an offset.

    Parameters
    ----------
    name
        An IANA name, e.g. Europe/Berlin.
    user
        The person.
    """
    if name is None:
        print(run_for_person(user, lambda acting: acting.memory.people.zone(acting.scope)))
        return

    async def move(acting: PersonContext, _record: CallRecord) -> str:
        return await acting.memory.people.set_zone(acting.scope, name)

    print(change_for_person(user, "memory zone", move))


def people(
    *, limit: Limit = 1000, offset: Annotated[int, number_up_to(10_000_000, least=0)] = 0, as_json: JsonFlag = False
) -> None:
    """List the people who have records here, with the number of their items.

    Parameters
    ----------
    limit
        Show at most this many.
    offset
        Skip this many first.
    as_json
        Print one JSON object a line.
    """

    async def look(app: App) -> list[PersonSummary]:
        return list(await PeopleDirectory(app.database).list_people(local_caller(), limit, offset))

    found = run_with_app(look)
    if as_json:
        for one in found:
            print(dump_json(asdict(one)))
    else:
        rows = [(one.user_id, f"{one.items:,}", one.zone, format_time(one.created_at)) for one in found]
        print(format_table(("user", "items", "zone", "since"), rows) if rows else NO_PEOPLE)
    if len(found) == limit:
        print(f"There may be more: --offset {offset + limit}", file=sys.stderr)


STANDARD_STREAM = "-"
# An export contains all records of a person, so only the user may read the file.
PRIVATE_MODE = 0o600


def export_records(file: str = STANDARD_STREAM, /, *, user: UserOption = DEFAULT_USER) -> None:
    """Write all records of a person to a JSON file that `memory import` accepts.

    Parameters
    ----------
    file
        A new file; - for standard output.
    user
        The person.
    """
    if file != STANDARD_STREAM and Path(file).exists():
        raise Invalid(f"{file} is there already; name another file")

    async def export(acting: PersonContext, _record: CallRecord) -> Mapping[str, Any]:
        return await acting.memory.people.export(acting.scope)

    text = json.dumps(change_for_person(user, "memory export", export), ensure_ascii=file == STANDARD_STREAM)
    if file == STANDARD_STREAM:
        print(text)
        return
    path = Path(file)
    path.touch(PRIVATE_MODE)
    path.write_text(text + "\n", encoding="utf-8")
    print(f"Written: {printable_line(file)}")


def import_records(file: str, /, *, user: UserOption = DEFAULT_USER) -> None:
    """Import an export, for a person without records.

    Parameters
    ----------
    file
        What `memory export` wrote; - for standard input.
    user
        The person.
    """
    document = _read_document(file)

    async def read(acting: PersonContext, _record: CallRecord) -> Mapping[str, int]:
        return await acting.memory.people.import_(acting.scope, document)

    print(f"Taken in: {_describe_counts(change_for_person(user, 'memory import', read))}")


def erase(*, user: UserOption = DEFAULT_USER, yes: Flag = False) -> None:
    """Erase all records of a person. This cannot be undone.

    Parameters
    ----------
    user
        The person.
    yes
        Confirm: this cannot be undone.
    """
    person = require_user_id(user)
    if not yes:
        raise Invalid(
            f"This erases all records of {person} and cannot be undone; keep a copy with frontdesk memory export FILE "
            f"--user {person}, then add --yes"
        )

    async def forget(app: App, _record: CallRecord) -> ErasedRecords:
        return await app.memory.people.erase(PersonScope.for_caller(local_caller(user=person)))

    # The journal entry of this command has no person, or the person's name would remain.
    erased = run_change("memory erase", forget)
    print(f"Erased: {_describe_counts(erased.counts)}")
    if erased.left:
        print("\n".join(f"Not erased: {printable_line(one)}" for one in erased.left), file=sys.stderr)
        sys.exit(1)


def _read_document(file: str) -> Mapping[str, Any]:
    try:
        found: object = json.loads(
            sys.stdin.read() if file == STANDARD_STREAM else Path(file).read_text(encoding="utf-8")
        )
    except OSError as error:
        raise Invalid(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise Invalid(f"{file} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Invalid(f"{file} is no export: it must hold a JSON object")
    return cast("Mapping[str, Any]", found)


def _describe_counts(counts: Mapping[str, int]) -> str:
    said = [f"{number:,} {name.replace('_', ' ')}" for name, number in counts.items() if number]
    return ", ".join(said) or "nothing was there"
