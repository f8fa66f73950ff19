"""Everything that is kept for a person, over HTTP."""

from fastapi import APIRouter, FastAPI

from frontdesk.app import App
from frontdesk.memory.model import ItemType
from frontdesk.surfaces.rest.callers import by_header
from frontdesk.surfaces.rest.calls import recorded
from frontdesk.surfaces.rest.memory.activities import add_activities
from frontdesk.surfaces.rest.memory.categories import add_categories
from frontdesk.surfaces.rest.memory.memories import add_memories
from frontdesk.surfaces.rest.memory.people import add_people
from frontdesk.surfaces.rest.memory.queue import add_queue
from frontdesk.surfaces.rest.memory.refused import REFUSALS
from frontdesk.surfaces.rest.memory.searching import add_memory_search, add_timeline_search
from frontdesk.surfaces.rest.memory.stats import add_stats
from frontdesk.surfaces.rest.memory.subtasks import add_relations, add_subtasks
from frontdesk.surfaces.rest.memory.tasks import add_tasks
from frontdesk.surfaces.rest.memory.timeline import add_timeline
from frontdesk.surfaces.rest.memory.timers import add_entries, add_time_of, add_timers


def add_memory_routes(api: FastAPI, app: App, prefix: str) -> None:
    """`prefix` is where the API is mounted."""
    room, router = app.memory, APIRouter(route_class=recorded(app, prefix, by_header), responses=REFUSALS)
    add_tasks(router, room)
    add_subtasks(router, room)
    add_relations(router, room)
    add_timers(router, room)
    add_entries(router, room)
    # Before what is found by its id: the first route that fits an address has it.
    add_memory_search(router, room)
    add_timeline_search(router, room)
    add_memories(router, room)
    add_activities(router, room)
    add_timeline(router, room)
    for path, kind in (("/tasks", ItemType.TASK), ("/activities", ItemType.ACTIVITY), ("/timeline-items", None)):
        add_time_of(router, room, path, kind)
    add_queue(router, room)
    add_categories(router, room)
    add_people(router, room)
    add_stats(router, room)
    api.include_router(router)
