"""Shows what is stored for each person: tasks, memories, timeline, time, work; exports and erases it."""

import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode
from zoneinfo import ZoneInfo

from frontdesk import zones
from frontdesk.errors import Invalid, NotFound
from frontdesk.identity.inbound import USER_ID_LENGTH, is_user_id
from frontdesk.identity.model import Caller
from frontdesk.interfaces.web.model import (
    ActionRoute,
    FileDownload,
    PageContent,
    PageRedirect,
    PageRequest,
    PageRoute,
    StreamRoute,
)
from frontdesk.interfaces.web.rendering import shorten
from frontdesk.memory.model import (
    AiStatus,
    ItemSearch,
    ItemType,
    PersonActivity,
    PersonScope,
    Task,
    TaskStatus,
    TimelineItem,
    TimelinePosition,
)
from frontdesk.memory.operations.base import format_minutes, format_time
from frontdesk.memory.people import PeopleDirectory
from frontdesk.memory.people_export import export_chunks
from frontdesk.memory.search.service import MAX_QUERY
from frontdesk.memory.service import RecordServices
from frontdesk.memory.tasks_rules import MAX_SEARCH, TaskFilter, is_open
from frontdesk.memory.time_tracking import WEEK_DAYS
from frontdesk.memory.times import parse_time
from frontdesk.memory.validation import RecordPage, parse_choice
from frontdesk.memory.work_queue_rules import OPEN_STATUSES, AiTaskFilter, is_cleared

# Browsers resolve these path segments, even when they are escaped.
DOT_SEGMENTS = (".", "..")
POSITION_SEPARATOR = "~"
MOST_QUERY_FIELDS = 20
LARGEST_OFFSET = 1_000_000


def person_path(user: str, /, **query: object) -> str:
    """The address of a person's page. Empty values are left out of the query."""
    said = {name: str(value) for name, value in query.items() if value not in (None, "", 0)}
    if user in DOT_SEGMENTS:
        return f"/people/?{urlencode({'id': user, **said})}"
    path = f"/people/{quote(user, safe='')}"
    return f"{path}?{urlencode(said)}" if said else path


def return_path(user: str, text: str, /, **otherwise: object) -> str:
    """The page that a form was sent from. Its query cannot lead to another site."""
    query = parse_qsl(text, max_num_fields=MOST_QUERY_FIELDS) if len(text) <= USER_ID_LENGTH * 10 else []
    return person_path(user, **(dict(query) or otherwise))


def require_user_id(user: str) -> str:
    if not is_user_id(user):
        raise Invalid(f"A person's id has 1 to {USER_ID_LENGTH} printable characters, as the list of people shows them")
    return user


def parse_position(text: str) -> TimelinePosition | None:
    """The position in a list, as `position_after` formats it."""
    if not text:
        return None
    at, _, item_id = text.rpartition(POSITION_SEPARATOR)
    return TimelinePosition(parse_time(at, ZoneInfo("UTC"), "before"), item_id)


def position_after(item: TimelineItem) -> str:
    return f"{item.created_at.astimezone(UTC).isoformat()}{POSITION_SEPARATOR}{item.id}"


def parse_offset(text: str) -> int:
    """The number of rows to skip."""
    if not text:
        return 0
    digits = text.lstrip("0") or "0"
    if (
        not text.isascii()
        or not text.isdecimal()
        or len(digits) > len(str(LARGEST_OFFSET))
        or int(digits) > LARGEST_OFFSET
    ):
        raise Invalid(f"offset is a number up to {LARGEST_OFFSET:,}; start again with the first page")
    return int(digits)


def person_scope(caller: Caller, user: str) -> PersonScope:
    return PersonScope.for_caller(replace(caller, user_id=user))


def person_of_form(request: PageRequest) -> tuple[str, PersonScope]:
    """The person that a form names, and the scope of their records."""
    user = require_user_id(request.form.get("user", ""))
    return user, person_scope(request.caller, user)


TITLE_LENGTH = 60
DEFAULT_ZONE = "UTC"


@dataclass(frozen=True, slots=True)
class PersonView:
    """The person of a page. `activity` is None if nothing is stored for them."""

    asked: PageRequest
    user: str
    scope: PersonScope
    activity: PersonActivity | None

    @property
    def memory(self) -> RecordServices:
        return self.asked.app.memory

    def query(self, name: str) -> str:
        """A parameter of the query, without surrounding blanks."""
        return self.asked.query.get(name, "").strip()

    def page(self, template: str, tab: str, context: Mapping[str, Any]) -> PageContent:
        person = None if self.activity is None else self.activity.person
        zone = zones.zone_of_name(DEFAULT_ZONE if person is None else person.zone)
        own = {
            "user": self.user,
            "quoted": shlex.quote(self.user),
            "person": person,
            "last": None if self.activity is None else self.activity.last_change,
            "tab": tab,
            "at": partial(person_path, self.user),
            "local": partial(format_time, zone=zone),
            "length": format_minutes,
        }
        return PageContent(
            f"people/{template}.html", f"{shorten(self.user, TITLE_LENGTH)} · People", {**own, **context}
        )


async def view_person(request: PageRequest) -> PersonView:
    user = require_user_id(request.path_params["user_id"] or request.query.get("id", ""))
    scope = person_scope(request.caller, user)
    return PersonView(request, user, scope, await PeopleDirectory(request.app.database).person(request.caller, user))


SHOWN_TASKS = 25
OVERDUE = "overdue"
TASK_STATES = [("", "any state"), (OVERDUE, OVERDUE), *((one.value, one.replace("_", " ")) for one in TaskStatus)]
TASK_ORDERS = [("", "newest first"), ("due", "next due first")]


async def show_tasks(person: PersonView) -> PageContent:
    task_id = person.query("task")
    return await (_one_task(person, task_id) if task_id else _all_tasks(person))


async def _all_tasks(person: PersonView) -> PageContent:
    wanted = _task_filter(person)
    page = await person.memory.tasks.list(person.scope, wanted)
    chosen = {"q": wanted.search or "", "state": person.query("state"), "order": person.query("order")}
    context = {
        "page": page,
        "chosen": chosen,
        "states": TASK_STATES,
        "orders": TASK_ORDERS,
        **_paging(page, wanted.offset),
    }
    return person.page("tasks_found" if person.asked.part else "tasks", "tasks", context)


async def _one_task(person: PersonView, task_id: str) -> PageContent:
    task = await person.memory.tasks.get(person.scope, task_id)
    offset = parse_offset(person.query("offset"))
    under = TaskFilter(
        parent_task_id=task.id, sort_by="subtask_order", sort_order="asc", limit=SHOWN_TASKS, offset=offset
    )
    page = await person.memory.tasks.list(person.scope, under)
    return person.page("task", "tasks", {"task": task, "page": page, **_paging(page, offset)})


def _task_filter(person: PersonView) -> TaskFilter:
    """The filter of the list. Without a search or state, subtasks are left out."""
    search, state = person.query("q")[:MAX_SEARCH], person.query("state")
    by_due = person.query("order") == "due"
    return TaskFilter(
        search=search or None,
        status=parse_choice(TaskStatus, "state", state) if state and state != OVERDUE else None,
        overdue=state == OVERDUE,
        root_tasks_only=not (search or state),
        sort_by="due_date" if by_due else "created_at",
        sort_order="asc" if by_due else "desc",
        limit=SHOWN_TASKS,
        offset=parse_offset(person.query("offset")),
    )


def _paging(page: RecordPage[Task], offset: int) -> dict[str, Any]:
    return {
        "is_open": is_open,
        "newer": max(0, offset - SHOWN_TASKS) if offset else None,
        "older": offset + SHOWN_TASKS if page.has_more else None,
    }


SHOWN_MEMORIES = 25
ONLY_MEMORIES = frozenset({ItemType.MEMORY})


async def show_memories(person: PersonView) -> PageContent:
    memory_id, words = person.query("memory"), person.query("q")[:MAX_QUERY]
    if memory_id:
        memory = await person.memory.memories.get(person.scope, memory_id)
        return person.page("memory", "memories", {"memory": memory})
    return await (_search_memories(person, words) if words else _all_memories(person))


async def _search_memories(person: PersonView, words: str) -> PageContent:
    everything = person.query("everything") == "1"
    query = ItemSearch(text=words, types=None if everything else ONLY_MEMORIES, limit=SHOWN_MEMORIES)
    hits = await person.memory.search.search(person.scope, query)
    return _memories_page(person, {"words": words, "everything": everything, "hits": hits, "found": (), "older": ""})


async def _all_memories(person: PersonView) -> PageContent:
    items = await person.memory.timeline.newest(
        person.scope, SHOWN_MEMORIES + 1, parse_position(person.query("before")), ItemType.MEMORY
    )
    by_id = await person.memory.memories.get_many(person.scope, [item.id for item in items[:SHOWN_MEMORIES]])
    context = {
        "words": "",
        "everything": False,
        "hits": (),
        "found": [by_id[item.id] for item in items[:SHOWN_MEMORIES] if item.id in by_id],
        "older": position_after(items[SHOWN_MEMORIES - 1]) if len(items) > SHOWN_MEMORIES else "",
    }
    return _memories_page(person, context)


def _memories_page(person: PersonView, context: Mapping[str, object]) -> PageContent:
    return person.page("memories_found" if person.asked.part else "memories", "memories", context)


SHOWN_ITEMS = 30
ITEM_KINDS = [("", "everything"), *((one.value, one.value) for one in ItemType)]


async def show_timeline(person: PersonView) -> PageContent:
    said = person.query("kind")
    kind = parse_choice(ItemType, "kind", said) if said else None
    items = await person.memory.timeline.newest(
        person.scope, SHOWN_ITEMS + 1, parse_position(person.query("before")), kind
    )
    context = {
        "items": items[:SHOWN_ITEMS],
        "kind": said,
        "kinds": ITEM_KINDS,
        "before": person.query("before"),
        "older": position_after(items[SHOWN_ITEMS - 1]) if len(items) > SHOWN_ITEMS else "",
    }
    return person.page("timeline", "timeline", context)


# Entries per day on the page; the command lists all.
MOST_ENTRIES = 50


async def show_time(person: PersonView) -> PageContent:
    days = await person.memory.time_tracking.days(person.scope, person.query("day") or None)
    last, first = days[0].day, days[-1].day
    context = {
        "running": await person.memory.time_tracking.running(person.scope),
        "days": days,
        "total": sum(day.total_minutes for day in days),
        "longest": max(day.total_minutes for day in days),
        "most": MOST_ENTRIES,
        "day": person.query("day"),
        "older": first - timedelta(days=1),
        "newer": last + timedelta(days=WEEK_DAYS),
    }
    return person.page("time", "time", context)


SHOWN_WORK = 25
WORK_STATES = [("", "any state"), *((one.value, one.replace("_", " ")) for one in AiStatus)]
WORK_RULES = {"is_cleared": is_cleared, "unfinished": OPEN_STATUSES}


async def show_work(person: PersonView) -> PageContent:
    work_id = person.query("work")
    if not work_id:
        return await _all_work(person)
    work = await person.memory.work_queue.get(person.scope, work_id)
    return person.page("piece", "work", {"work": work, **WORK_RULES})


async def _all_work(person: PersonView) -> PageContent:
    state, offset = person.query("state"), parse_offset(person.query("offset"))
    wanted = AiTaskFilter(
        status=parse_choice(AiStatus, "state", state) if state else None, limit=SHOWN_WORK, offset=offset
    )
    page = await person.memory.work_queue.list(person.scope, wanted)
    context = {
        "page": page,
        "state": state,
        "states": WORK_STATES,
        "newer": max(0, offset - SHOWN_WORK) if offset else None,
        "older": offset + SHOWN_WORK if page.has_more else None,
        **WORK_RULES,
    }
    return person.page("work", "work", context)


COUNT_NAMES = {"ai_tasks": "work for agents", "ai_task_events": "steps of that work", "house": "records outside memory"}


async def show_everything(person: PersonView) -> PageContent:
    counts = await person.memory.people.counts(person.scope)
    return person.page("everything", "everything", {"counts": {_count_name(name): n for name, n in counts.items()}})


async def export_records(request: PageRequest) -> FileDownload:
    user, scope = person_of_form(request)
    document = await request.app.memory.people.export(scope)
    return FileDownload(
        _encode(export_chunks(document)), f"frontdesk-{_file_name_part(user)}-{request.now:%Y-%m-%d}.json"
    )


async def erase_records(request: PageRequest) -> PageRedirect:
    user, scope = person_of_form(request)
    if request.form.get("sure", "").strip() != user.strip():
        raise Invalid(
            "Nothing was erased: the typed id differs from this person's id; go back and type it as it is shown"
        )
    gone = await request.app.memory.people.erase(scope)
    left = f". Not erased: {'; '.join(gone.left)}" if gone.left else ""
    return PageRedirect("/people", f"Erased: {_describe_counts(gone.counts)}{left}")


def _encode(parts: Iterator[str]) -> Iterator[bytes]:
    # A lone surrogate, which JSON allows and UTF-8 does not, is written as a JSON escape.
    return (part.encode(errors="backslashreplace") for part in parts)


def _file_name_part(user: str) -> str:
    """An id as part of a file name."""
    return "".join(char if char.isalnum() or char in "-_@" else "-" for char in user)[:80]


def _describe_counts(counts: Mapping[str, int]) -> str:
    said = [f"{number:,} {_count_name(name)}" for name, number in counts.items() if number]
    return ", ".join(said) or "nothing was there"


def _count_name(name: str) -> str:
    return COUNT_NAMES.get(name, name.replace("_", " "))


TABS: Mapping[str, Callable[[PersonView], Awaitable[PageContent]]] = {
    "tasks": show_tasks,
    "memories": show_memories,
    "timeline": show_timeline,
    "time": show_time,
    "work": show_work,
    "everything": show_everything,
}


async def show_person(request: PageRequest) -> PageContent:
    look = TABS.get(request.query.get("tab", "") or "tasks")
    if look is None:
        raise NotFound(f"A person's page has no such tab; it has {', '.join(TABS)}")
    return await look(await view_person(request))


SHOWN_PEOPLE = 20


async def list_people(request: PageRequest) -> PageContent:
    beginning, after = (request.query.get(name, "").strip()[:USER_ID_LENGTH] for name in ("find", "after"))
    found = await PeopleDirectory(request.app.database).list_active_people(
        request.caller, SHOWN_PEOPLE + 1, after, beginning
    )
    context = {
        "rows": found[:SHOWN_PEOPLE],
        "address_of": person_path,
        "find": beginning,
        "after": after,
        "goes_on": len(found) > SHOWN_PEOPLE,
        "exactly": person_path(beginning) if beginning else "",
    }
    return PageContent("people/found.html" if request.part else "people/everybody.html", "People", context)


TASK_TITLE_LENGTH = 80


async def complete_task(request: PageRequest) -> PageRedirect:
    return await _set_task_status(request, TaskStatus.COMPLETED, "Completed")


async def reopen_task(request: PageRequest) -> PageRedirect:
    return await _set_task_status(request, TaskStatus.PENDING, "Reopened")


async def stop_timer(request: PageRequest) -> PageRedirect:
    user, scope = person_of_form(request)
    entry = await request.app.memory.time_tracking.stop(scope, request.form.get("item", ""))
    said = "No timer runs" if entry is None else f"Stopped: {shorten(entry.item_title, TASK_TITLE_LENGTH)}"
    return PageRedirect(return_path(user, request.form.get("back", ""), tab="time"), said)


async def approve_work(request: PageRequest) -> PageRedirect:
    user, scope = person_of_form(request)
    work = await request.app.memory.work_queue.approve(scope, request.form.get("work", ""))
    agent = shorten(work.agent_name, TASK_TITLE_LENGTH)
    said = f"Approved: {agent} may execute {shorten(work.objective, TASK_TITLE_LENGTH)}"
    return PageRedirect(return_path(user, request.form.get("back", ""), tab="work"), said)


async def _set_task_status(request: PageRequest, status: TaskStatus, word: str) -> PageRedirect:
    user, scope = person_of_form(request)
    task = await request.app.memory.tasks.set_status(scope, request.form.get("task", ""), status)
    return PageRedirect(
        return_path(user, request.form.get("back", "")), f"{word}: {shorten(task.title, TASK_TITLE_LENGTH)}"
    )


# Actions take the person's id from the form: an id may contain characters that would end an address.
PEOPLE: tuple[PageRoute | ActionRoute | StreamRoute, ...] = (
    PageRoute("/people", list_people),
    PageRoute("/people/{user_id:path}", show_person),
    ActionRoute("/people/complete", complete_task),
    ActionRoute("/people/reopen", reopen_task),
    ActionRoute("/people/stop", stop_timer),
    ActionRoute("/people/approve", approve_work),
    ActionRoute("/people/export", export_records),
    ActionRoute("/people/erase", erase_records),
)
