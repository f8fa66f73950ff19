"""Puts the scheduler together: its stores, its worker, and the service that every door uses."""

import os
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup
from prometheus_client import CollectorRegistry

from frontdesk.agents.chat.store import SessionStore
from frontdesk.agents.host import AgentHost
from frontdesk.db.engine import Database
from frontdesk.identity.authority import Authorities
from frontdesk.identity.store import KeyStore
from frontdesk.schedule.bell import Bell
from frontdesk.schedule.defaults.service import Defaults
from frontdesk.schedule.defaults.store import DefaultStore
from frontdesk.schedule.delivery import deliverer, may_run
from frontdesk.schedule.executing import Executing
from frontdesk.schedule.forwards.service import Forwards
from frontdesk.schedule.forwards.store import ForwardStore
from frontdesk.schedule.hosting import Hosted, Upload
from frontdesk.schedule.importing.service import Importing
from frontdesk.schedule.limits import Limits
from frontdesk.schedule.looking import Looking
from frontdesk.schedule.metrics import ScheduleMetrics
from frontdesk.schedule.overview.service import Overview
from frontdesk.schedule.overview.store import OverviewStore
from frontdesk.schedule.past.store import PastStore
from frontdesk.schedule.placing import Keeps, Places
from frontdesk.schedule.service import Schedules, Webhooks
from frontdesk.schedule.store import ScheduleStore
from frontdesk.schedule.stretches import Stretches
from frontdesk.schedule.worker import Worker
from frontdesk.settings import Settings, agent_id_in, variables


@dataclass(frozen=True, slots=True)
class Working:
    """What delivers: the worker, and what sends answers on; give `run` a task of its own."""

    worker: Worker
    forwards: Forwards

    async def run(self) -> None:
        """Until cancelled; what is under way then is given time to end."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.forwards.run)
            try:
                await self.worker.run()
            finally:
                tasks.cancel_scope.cancel()


def open_schedules(
    settings: Settings,
    database: Database,
    host: AgentHost,
    upload: Upload | None,
    registry: CollectorRegistry,
    tasks: TaskGroup,
    keeps: Keeps,
) -> tuple[Schedules, Working]:
    """The service, and what is to run behind it in a process that delivers."""
    bell, metrics, authorities = Bell(database), ScheduleMetrics(registry), Authorities(KeyStore(database))
    forwards = Forwards(ForwardStore(database), settings.webhook_secret, private=settings.webhook_private)
    worker = Worker(
        database,
        deliverer(host, may_run(authorities)),
        bell,
        concurrency=settings.worker_concurrency,
        keep_days=settings.journal_days,
        metrics=metrics,
        forwarded=forwards.wake,
    )
    store, past, limits = ScheduleStore(database, bell), PastStore(database, bell), _limits(settings)
    executing = Executing(
        *(worker, store, past, metrics, settings.works, settings.executor_interval, settings.worker_concurrency),
        Stretches(tasks, worker.once),
    )
    hosted = Hosted(host, settings.letta_base_url, upload, settings.letta_token is not None)
    schedules = Schedules(
        store=store,
        looking=Looking(store, past),
        overview=Overview(OverviewStore(database), past),
        limits=limits,
        webhooks=Webhooks(settings.webhook_secret is not None, settings.webhook_private),
        places=Places(host, SessionStore(database), keeps),
        defaults=_defaults(settings, database, hosted),
        hosted=hosted,
        executing=executing,
        importing=Importing(store, limits, host),
        authorities=authorities,
    )
    return schedules, Working(worker, forwards)


def _limits(settings: Settings) -> Limits:
    return Limits(settings.schedule_limit, settings.schedule_shortest, settings.schedule_longest_prompt)


def _defaults(settings: Settings, database: Database, hosted: Hosted) -> Defaults:
    present = {name: agent_id_in(os.environ.get(name)) is not None for name in variables("default_agent_id")}
    fallback = settings.single_agent_fallback
    return Defaults(DefaultStore(database), hosted.validate, present, single_agent_fallback=fallback)
