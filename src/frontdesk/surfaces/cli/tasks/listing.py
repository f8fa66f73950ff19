"""`frontdesk tasks list`, `show`, `tree` and `stats`."""

import sys
from dataclasses import asdict, dataclass
from typing import Annotated
from zoneinfo import ZoneInfo

from cyclopts import Parameter

from frontdesk.memory.given import Page
from frontdesk.memory.model import Priority, Task, TaskStatus
from frontdesk.memory.tasks.wanted import SortBy, TaskWanted
from frontdesk.memory.tooling.telling.tasks import task_told
from frontdesk.surfaces.cli.options import Flag, Json, Many, up_to
from frontdesk.surfaces.cli.person import LOCAL, Acting, User, looking
from frontdesk.surfaces.cli.plain import plain
from frontdesk.surfaces.cli.remembered import tell_figures
from frontdesk.surfaces.cli.tasks.telling import as_object, in_rows

Limit = Annotated[int, up_to(1000)]
Depth = Annotated[int, up_to(10)]
NONE = "No tasks. Make one: frontdesk tasks add TITLE"


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Which tasks.

    Parameters
    ----------
    status
        Only those that stand so.
    priority
        Only those that are so pressing.
    category
        Only those of this category, by its name or id.
    assignee
        Only those of this person or agent.
    search
        Only those in which each of these words occurs.
    tag
        Only those with this tag; repeated for several, all of which they must have.
    due_after
        Only those due on this day, at this time, or later.
    due_before
        Only those due on this day, at this time, or earlier.
    overdue
        Only open ones whose time is over.
    zone
        The time zone in which days are meant; the person's own when left out.
    """

    status: TaskStatus | None = None
    priority: Priority | None = None
    category: str | None = None
    assignee: str | None = None
    search: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    tag: Many = ()
    due_after: str | None = None
    due_before: str | None = None
    overdue: Flag = False
    zone: str | None = None


NO_LIMITS = Which()


def show_all(
    *,
    which: Which = NO_LIMITS,
    sort: SortBy = "created_at",
    ascending: Flag = False,
    limit: Limit = 100,
    offset: Annotated[int, up_to(10_000_000, least=0)] = 0,
    user: User = LOCAL,
    as_json: Json = False,
) -> None:
    """List tasks, the newest first.

    Parameters
    ----------
    sort
        By what they are put in order.
    ascending
        The first, the earliest or the lowest first.
    limit
        Show at most this many.
    offset
        Leave out so many first.
    user
        The person whose tasks they are.
    as_json
        Print one JSON object a line.
    """
    given = {name: value for name, value in asdict(which).items() if name not in ("tag", "zone")}
    wanted = TaskWanted(
        **given,
        tags=which.tag,
        every_tag=True,
        timezone=which.zone,
        sort_by=sort,
        sort_order="asc" if ascending else "desc",
        limit=limit,
        offset=offset,
    )

    async def look(acting: Acting) -> tuple[Page[Task], ZoneInfo]:
        return await acting.room.tasks.list(acting.scope, wanted), await acting.zone()

    page, zone = looking(user, look)
    if as_json:
        for task in page.items:
            print(as_object(task))
    elif page.items:
        print(in_rows(page.items, zone))
    else:
        print(NONE if not page.total and which == NO_LIMITS else "No such tasks.")
    if page.has_more:
        print(f"There are more: --offset {offset + len(page.items)}", file=sys.stderr)


def show(task_id: str, /, *, user: User = LOCAL, as_json: Json = False) -> None:
    """Show a task with all that is known of it.

    Parameters
    ----------
    task_id
        Its id, or the first 8 characters of it or more.
    user
        The person whose task it is.
    as_json
        Print one JSON object.
    """

    async def look(acting: Acting) -> tuple[Task, ZoneInfo]:
        found = await acting.names.task(acting.scope, task_id)
        return await acting.room.tasks.get(acting.scope, found), await acting.zone()

    task, zone = looking(user, look)
    print(as_object(task) if as_json else plain(task_told(task, zone)))


def tree(
    task_id: str, /, *, depth: Depth = 5, open_only: Flag = False, user: User = LOCAL, as_json: Json = False
) -> None:
    """Show a task and what it is made of.

    Parameters
    ----------
    task_id
        Its id, or the first 8 characters of it or more.
    depth
        So many levels at most.
    open_only
        Leave out what is completed.
    user
        The person whose task it is.
    as_json
        Print one JSON object a line.
    """

    async def look(acting: Acting) -> tuple[list[Task], ZoneInfo]:
        found = await acting.names.task(acting.scope, task_id)
        tasks = await acting.room.tasks.tree(acting.scope, found, depth, include_completed=not open_only)
        return list(tasks), await acting.zone()

    tasks, zone = looking(user, look)
    if as_json:
        for task in tasks:
            print(as_object(task))
        return
    print(in_rows(tasks, zone, tasks[0].hierarchy_level))


def stats(*, zone: str | None = None, user: User = LOCAL, as_json: Json = False) -> None:
    """Show how the tasks stand, in numbers.

    Parameters
    ----------
    zone
        The time zone in which today is meant; the person's own when left out.
    user
        The person whose tasks they are.
    as_json
        Print one JSON object.
    """
    found = looking(user, lambda acting: acting.room.tasks.stats(acting.scope, zone=zone))
    tell_figures(asdict(found), as_json=as_json)
