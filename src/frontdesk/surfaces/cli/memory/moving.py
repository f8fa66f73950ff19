"""`frontdesk memory export`, `import` and `erase`."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from frontdesk.app import App
from frontdesk.errors import Invalid
from frontdesk.journal.record import Record
from frontdesk.memory.people.service import Erased
from frontdesk.memory.scope import Scope
from frontdesk.surfaces.cli.options import Flag
from frontdesk.surfaces.cli.person import LOCAL, Acting, User, changing, checked
from frontdesk.surfaces.cli.plain import line
from frontdesk.surfaces.cli.running import operator, with_change

STANDARD = "-"
# It holds all that a person keeps: for the eyes of whoever asked for it.
PRIVATE = 0o600


def hand_out(file: str = STANDARD, /, *, user: User = LOCAL) -> None:
    """Write everything of a person's into a JSON file that `memory import` takes.

    Parameters
    ----------
    file
        A new file; - for standard output.
    user
        The person.
    """
    if file != STANDARD and Path(file).exists():
        raise Invalid(f"{file} is there already; name another file")

    async def export(acting: Acting, _record: Record) -> Mapping[str, Any]:
        return await acting.room.people.export(acting.scope)

    text = json.dumps(changing(user, "memory export", export), ensure_ascii=file == STANDARD)
    if file == STANDARD:
        print(text)
        return
    path = Path(file)
    path.touch(PRIVATE)
    path.write_text(text + "\n", encoding="utf-8")
    print(f"Written: {line(file)}")


def take_in(file: str, /, *, user: User = LOCAL) -> None:
    """Take an export in, for a person who keeps nothing here yet.

    Parameters
    ----------
    file
        What `memory export` wrote; - for standard input.
    user
        The person.
    """
    document = _document(file)

    async def read(acting: Acting, _record: Record) -> Mapping[str, int]:
        return await acting.room.people.import_(acting.scope, document)

    print(f"Taken in: {_counted(changing(user, 'memory import', read))}")


def erase(*, user: User = LOCAL, yes: Flag = False) -> None:
    """Erase everything of a person's, for good.

    Parameters
    ----------
    user
        The person.
    yes
        That it is meant: there is no way back.
    """
    person = checked(user)
    if not yes:
        raise Invalid(
            f"This erases everything of {person}, for good; keep a copy with frontdesk memory export FILE --user "
            f"{person}, then say --yes"
        )

    async def forget(app: App, _record: Record) -> Erased:
        return await app.memory.people.erase(Scope.of(operator(user=person)))

    # The row of the journal that says so names nobody, or something would be left.
    erased = with_change("memory erase", forget)
    print(f"Erased: {_counted(erased.counts)}")
    if erased.left:
        print("\n".join(f"Not erased: {line(one)}" for one in erased.left), file=sys.stderr)
        sys.exit(1)


def _document(file: str) -> Mapping[str, Any]:
    try:
        found: object = json.loads(sys.stdin.read() if file == STANDARD else Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise Invalid(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise Invalid(f"{file} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Invalid(f"{file} is no export: it must hold a JSON object")
    return cast("Mapping[str, Any]", found)


def _counted(counts: Mapping[str, int]) -> str:
    said = [f"{number:,} {name.replace('_', ' ')}" for name, number in counts.items() if number]
    return ", ".join(said) or "nothing was there"
