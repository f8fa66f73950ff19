"""Builds the schedules capability: stores, worker, webhooks and service."""

import os
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup
from prometheus_client import CollectorRegistry

from frontdesk.agents.chat.store import ChatSessionStore
from frontdesk.agents.host import AgentHost
from frontdesk.db.engine import Database
from frontdesk.identity.authority import AuthorityService
from frontdesk.identity.store import KeyStore
from frontdesk.schedules.agents import ConversationChooser, DefaultAgents, KeepsConversation, ScheduleHost, UploadTool
from frontdesk.schedules.create import ScheduleLimits
from frontdesk.schedules.delivery import current_authority, make_deliver
from frontdesk.schedules.executor import OnDemandRuns, ScheduleExecutor
from frontdesk.schedules.history_store import HistoryStore
from frontdesk.schedules.metrics import ScheduleMetrics
from frontdesk.schedules.overview_store import OverviewStore
from frontdesk.schedules.promptyoself import PromptYoSelfImporter
from frontdesk.schedules.queries import ScheduleOverview, ScheduleQueries
from frontdesk.schedules.service import ScheduleService, WebhookOptions
from frontdesk.schedules.store import DefaultAgentStore, ScheduleStore
from frontdesk.schedules.wakeup import WakeupNotifier
from frontdesk.schedules.webhook_store import WebhookStore
from frontdesk.schedules.webhooks import WebhookForwarder
from frontdesk.schedules.worker import Worker
from frontdesk.settings import Settings
from frontdesk.settings.model import clean_agent_id, variable_names


@dataclass(frozen=True, slots=True)
class DeliveryRuntime:
    """What delivers: the worker, and what sends answers on; give `run` a task of its own."""

    worker: Worker
    webhooks: WebhookForwarder

    async def run(self) -> None:
        """Until cancelled; what is under way then is given time to end."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.webhooks.run)
            try:
                await self.worker.run()
            finally:
                tasks.cancel_scope.cancel()


def open_schedules(
    settings: Settings,
    database: Database,
    host: AgentHost,
    upload: UploadTool | None,
    registry: CollectorRegistry,
    tasks: TaskGroup,
    keeps: KeepsConversation,
) -> tuple[ScheduleService, DeliveryRuntime]:
    """The service, and what is to run behind it in a process that delivers."""
    notifier, metrics, authorities = (
        WakeupNotifier(database),
        ScheduleMetrics(registry),
        AuthorityService(KeyStore(database)),
    )
    forwards = WebhookForwarder(WebhookStore(database), settings.webhook_secret, private=settings.webhook_private)
    worker = Worker(
        database,
        make_deliver(host, current_authority(authorities)),
        notifier,
        concurrency=settings.worker_concurrency,
        keep_days=settings.journal_days,
        metrics=metrics,
        forwarded=forwards.wake,
    )
    store, past, limits = ScheduleStore(database, notifier), HistoryStore(database, notifier), _build_limits(settings)
    executing = ScheduleExecutor(
        *(
            worker,
            store,
            past,
            metrics,
            settings.delivers_prompts,
            settings.executor_interval,
            settings.worker_concurrency,
        ),
        OnDemandRuns(tasks, worker.deliver_due),
    )
    hosted = ScheduleHost(host, settings.letta_base_url, upload, settings.letta_secret is not None)
    schedules = ScheduleService(
        store=store,
        queries=ScheduleQueries(store, past),
        overview=ScheduleOverview(OverviewStore(database), past),
        limits=limits,
        webhooks=WebhookOptions(settings.webhook_secret is not None, settings.webhook_private),
        conversations=ConversationChooser(host, ChatSessionStore(database), keeps),
        defaults=_build_default_agents(settings, database, hosted),
        host=hosted,
        executor=executing,
        importer=PromptYoSelfImporter(store, limits, host),
        authorities=authorities,
    )
    return schedules, DeliveryRuntime(worker, forwards)


def _build_limits(settings: Settings) -> ScheduleLimits:
    return ScheduleLimits(settings.schedule_limit, settings.schedule_shortest, settings.schedule_longest_prompt)


def _build_default_agents(settings: Settings, database: Database, hosted: ScheduleHost) -> DefaultAgents:
    present = {name: clean_agent_id(os.environ.get(name)) is not None for name in variable_names("default_agent_id")}
    fallback = settings.single_agent_fallback
    return DefaultAgents(DefaultAgentStore(database), hosted.validate, present, single_agent_fallback=fallback)
