"""`frontdesk memory categories`: the names that a person puts things under."""

from dataclasses import asdict
from typing import Any

from cyclopts import App as Command

from frontdesk.journal.record import Record
from frontdesk.memory.asked.timeline import CreateCategory
from frontdesk.memory.model import Category
from frontdesk.surfaces.cli.options import Json
from frontdesk.surfaces.cli.person import LOCAL, Acting, User, asked, changing, looking
from frontdesk.surfaces.cli.plain import line
from frontdesk.surfaces.cli.words import ABSENT, dumped, table

DESCRIPTION = 60
NONE = "No categories. Make one: frontdesk memory categories add NAME"

command = Command(
    name="categories",
    help="The categories that tasks, memories and activities are put under. Without a command, they are listed.",
)


@command.default
def show(*, user: User = LOCAL, as_json: Json = False) -> None:
    """List the categories.

    Parameters
    ----------
    user
        The person whose categories they are.
    as_json
        Print one JSON object a line.
    """
    found = looking(user, lambda acting: acting.room.categories.every(acting.scope))
    if as_json:
        for one in found:
            print(dumped(asdict(one)))
        return
    rows = [(one.id, one.name, one.color, line(one.description, DESCRIPTION) or ABSENT) for one in found]
    print(table(("id", "name", "color", "description"), rows) if rows else NONE)


@command.command
def add(
    name: str,
    /,
    *,
    description: str | None = None,
    color: str | None = None,
    icon: str | None = None,
    user: User = LOCAL,
) -> None:
    """Make a category and print its id.

    Parameters
    ----------
    name
        What it is called; no two have the same name, whatever its case.
    description
        What belongs under it.
    color
        As #RRGGBB.
    icon
        A sign for it.
    user
        The person whose category it is.
    """
    given: dict[str, Any] = {"name": name, "description": description, "color": color, "icon": icon}

    async def make(acting: Acting, record: Record) -> Category:
        category = await acting.room.categories.create(acting.scope, asked(CreateCategory, given).said())
        record.action += f" {category.id}"
        return category

    print(changing(user, "memory categories add", make).id)


@command.command
def delete(name: str, /, *, user: User = LOCAL) -> None:
    """Delete a category; what was under it stays, under none.

    Parameters
    ----------
    name
        Its name, or its id.
    user
        The person whose category it is.
    """

    async def remove(acting: Acting, record: Record) -> Category:
        category = await acting.room.categories.get(acting.scope, name)
        record.action += f" {category.id}"
        await acting.room.categories.delete(acting.scope, category.id)
        return category

    print(f"Deleted: {line(changing(user, 'memory categories delete', remove).name)}")
