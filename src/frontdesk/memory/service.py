"""Builds the memory capability: one service for each kind of record."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from frontdesk.db.engine import Database
from frontdesk.embedding import Embedder
from frontdesk.journal.service import Journal
from frontdesk.memory.activities import ActivityService
from frontdesk.memory.categories import CategoryService
from frontdesk.memory.items_store import IdLookup
from frontdesk.memory.memories import MemoryService
from frontdesk.memory.people import OtherPersonData, PersonDataService
from frontdesk.memory.search.indexer import MemoryIndexer
from frontdesk.memory.search.service import ItemSearchService
from frontdesk.memory.store import PersonDatabase
from frontdesk.memory.tasks import TaskService
from frontdesk.memory.time_tracking import TimeTrackingService
from frontdesk.memory.timeline import TimelineService
from frontdesk.memory.wakeups import AgentWaker, CancelSchedule, CreateSchedule, FindAgent
from frontdesk.memory.work_queue import WorkQueueService


@dataclass(frozen=True, slots=True)
class StatusSources:
    """Where the system status comes from: the state of the parts, and the journal."""

    parts: Callable[[], Awaitable[Mapping[str, str]]]
    journal: Journal


@dataclass(frozen=True, slots=True)
class RecordServices:
    """The services for each kind of record. Each method takes a `PersonScope` first: whose records it uses."""

    tasks: TaskService
    memories: MemoryService
    activities: ActivityService
    timeline: TimelineService
    time_tracking: TimeTrackingService
    work_queue: WorkQueueService
    categories: CategoryService
    search: ItemSearchService
    people: PersonDataService
    id_lookup: IdLookup
    status: StatusSources


@dataclass(frozen=True, slots=True)
class MemoryDependencies:
    """What memory needs of other capabilities: schedules to wake agents, agents' names, other personal data, status."""

    schedule: CreateSchedule
    cancel: CancelSchedule
    find_agent: FindAgent
    agent_name: Callable[[str], Awaitable[str | None]]
    other_data: Sequence[OtherPersonData]
    status: StatusSources


def open_memory(
    database: Database, embedder: Embedder | None, others: MemoryDependencies
) -> tuple[RecordServices, MemoryIndexer]:
    """Open the services, and the indexer. Its `run` needs a task of its own."""
    records = PersonDatabase(database)
    reader = MemoryIndexer(records, embedder)
    records.on_change(reader.wake)
    waker = AgentWaker(records, others.schedule, others.cancel, others.find_agent)
    tasks = TaskService(records, waker.on_task_change)
    services = RecordServices(
        tasks=tasks,
        memories=MemoryService(records),
        activities=ActivityService(records),
        timeline=TimelineService(records, tasks),
        time_tracking=TimeTrackingService(records),
        work_queue=WorkQueueService(records, others.agent_name),
        categories=CategoryService(records),
        search=ItemSearchService(records, embedder),
        people=PersonDataService(records, others.other_data),
        id_lookup=IdLookup(records),
        status=others.status,
    )
    return services, reader
