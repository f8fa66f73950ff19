"""Offers the schedules capability to every interface: add, change, cancel, run now, redrive; and builds it."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

import anyio
from anyio.abc import TaskGroup
from prometheus_client import CollectorRegistry

from frontdesk.agents.chat.store import ChatSessionStore
from frontdesk.agents.host import AgentHost
from frontdesk.db.engine import Database
from frontdesk.errors import Conflict, NotFound
from frontdesk.identity import rights
from frontdesk.identity.authority import AuthorityService
from frontdesk.identity.model import Caller
from frontdesk.identity.store import KeyStore
from frontdesk.schedules.access import is_schedules_admin, require_write
from frontdesk.schedules.agents import ConversationChooser, DefaultAgents, KeepsConversation, ScheduleHost, UploadTool
from frontdesk.schedules.create import (
    CurrentRun,
    ScheduleLimits,
    build_schedule,
    change_schedule,
    check_may_schedule,
    check_may_start_run,
    is_recurring,
)
from frontdesk.schedules.delivery import make_deliver
from frontdesk.schedules.executor import OnDemandRuns, ScheduleExecutor
from frontdesk.schedules.history_store import HistoryStore
from frontdesk.schedules.model import (
    OwnerFilter,
    RunRecord,
    Schedule,
    ScheduleDefinition,
    ScheduleState,
    Trigger,
    now_us,
)
from frontdesk.schedules.overview_store import OverviewStore
from frontdesk.schedules.promptyoself import PromptYoSelfImporter
from frontdesk.schedules.queries import ScheduleOverview, ScheduleQueries
from frontdesk.schedules.requests import NewSchedule, SavedSchedule, ScheduleChange
from frontdesk.schedules.store import DefaultAgentStore, ScheduleFilter, ScheduleStore, StaleSchedule
from frontdesk.schedules.triggers import first_fire, next_fire_after
from frontdesk.schedules.wakeup import WakeupNotifier
from frontdesk.schedules.webhook_store import WebhookStore
from frontdesk.schedules.webhooks import WebhookForwarder, check_webhook
from frontdesk.schedules.worker import ScheduleMetrics, Worker
from frontdesk.settings import Settings
from frontdesk.settings.model import clean_agent_id, variable_names

# A change is tried again on top of a concurrent change, so that neither is lost.
UPDATE_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """Whether webhook answers can be signed, and whether they may go to private networks."""

    signed: bool = False
    private: bool = False


@dataclass(frozen=True, slots=True)
class ScheduleService:
    """Adds and changes schedules for a caller. What the caller may not see is `NotFound`, like a missing schedule."""

    store: ScheduleStore
    queries: ScheduleQueries
    overview: ScheduleOverview
    limits: ScheduleLimits
    webhooks: WebhookOptions
    conversations: ConversationChooser
    defaults: DefaultAgents
    host: ScheduleHost
    executor: ScheduleExecutor
    importer: PromptYoSelfImporter
    authorities: AuthorityService
    # Each agent's schedules are added one at a time, so that the limits of a run are counted correctly.
    agent_locks: WeakValueDictionary[str, anyio.Lock] = field(default_factory=WeakValueDictionary[str, anyio.Lock])

    async def add(self, caller: Caller, request: NewSchedule) -> SavedSchedule:
        """Create a schedule for the caller's agent."""
        require_write(caller)
        agent_id = await self.defaults.agent_for(caller, request.agent_id)
        now = now_us()
        new = build_schedule(request, agent_id, caller.user_id, self.limits, now)
        self._check_webhook(new)
        if not request.skip_validation:
            await self.host.validate(agent_id)
        async with self.agent_locks.setdefault(agent_id, anyio.Lock()):
            # Checked first: a conversation created for a schedule stays, even if the schedule is refused.
            self.limits.check_count(agent_id, await self.store.count_active(agent_id))
            new = replace(
                new, made_by=await self._creating_run(caller, new), authority=await self.authorities.of(caller)
            )
            new = replace(new, conversation_id=await self.conversations.choose(new, request.conversation_id or None))
            made = await self.store.add(new, _require_first_fire(new.trigger, now), now, self.limits.count)
        return SavedSchedule(made)

    async def cancel(self, caller: Caller, schedule_id: object, only: OwnerFilter | None = None) -> Schedule:
        """Cancel a schedule: no further run starts. With `only`, refuse schedules of other owners."""
        require_write(caller)
        gone = "Schedule {} not found or already cancelled"
        old = await self.queries.get_visible(caller, schedule_id, gone)
        if only is not None and not only.covers(old.what.agent_id, old.what.user_id):
            raise NotFound(gone.format(old.id))
        if not await self.store.cancel(old.id, now_us()):
            raise NotFound(gone.format(old.id))
        return await self._reload(old)

    async def pause(self, caller: Caller, schedule_id: object) -> Schedule:
        require_write(caller)
        old = await self.queries.get_visible(caller, schedule_id)
        if not await self.store.pause(old.id, now_us()):
            raise Conflict(f"Schedule {old.id} is {old.state}; only an active one can be paused")
        return await self._reload(old)

    async def resume(self, caller: Caller, schedule_id: object) -> SavedSchedule:
        """Resume a schedule; a one-time prompt that became due meanwhile runs immediately."""
        require_write(caller)
        old = await self.queries.get_visible(caller, schedule_id)
        found = await self.store.resume(old.id, now_us())
        if found is None:
            raise Conflict(f"Schedule {old.id} is {old.state}; only a paused one can be resumed")
        return SavedSchedule(found)

    async def update(self, caller: Caller, schedule_id: object, change: ScheduleChange) -> SavedSchedule:
        """Change a schedule; a new rule counts from now."""
        require_write(caller)
        for _ in range(UPDATE_ATTEMPTS):
            with suppress(StaleSchedule):
                return await self._update(caller, await self.queries.get_visible(caller, schedule_id), change)
        return await self._update(caller, await self.queries.get_visible(caller, schedule_id), change)

    async def _update(self, caller: Caller, old: Schedule, change: ScheduleChange) -> SavedSchedule:
        now = now_us()
        new = change_schedule(old, change, self.limits, now)
        self._check_webhook(new)
        if _definition_recurs(new) and not _definition_recurs(old.what):
            check_may_schedule(await self._current_runs(caller, old.what.agent_id), 0, recurring=True)
        if change.conversation_id or "conversation_id" in change.clear:
            new = replace(new, conversation_id=await self.conversations.choose(new, change.conversation_id or None))
        if (new.prompt, new.forward, new.conversation_id) != (
            *(old.what.prompt, old.what.forward, old.what.conversation_id),
        ):
            # A caller who changes the prompt or the answer's target limits the runs too.
            new = replace(new, authority=new.authority.combined_with(await self.authorities.of(caller)))
        found = await self.store.update(old.id, new, _new_intended_us(old, new, now), now, old)
        if found is None:
            raise Conflict(f"Schedule {old.id} is {old.state}, and cannot be changed any more; make a new one")
        return SavedSchedule(found)

    async def run_now(self, caller: Caller, schedule_id: object) -> str:
        """Run a schedule once more, as the next run in its agent's queue; returns the delivery id."""
        require_write(caller)
        old = await self.queries.get_visible(caller, schedule_id)
        check_may_start_run(await self._current_runs(caller, old.what.agent_id))
        return await self.store.run_now(old.id, now_us())

    async def redrive(self, caller: Caller, delivery_id: str) -> RunRecord:
        """Retry a dead run with all its attempts."""
        require_write(caller)
        past = self.queries.past
        found = await self.queries.get_visible_run(caller, delivery_id)
        if not await past.redrive(found.id, now_us()):
            raise Conflict(f"Run '{found.id}' is {found.standing}, and only a dead one can be tried again")
        return await past.get(found.id) or found

    async def _reload(self, old: Schedule) -> Schedule:
        return await self.store.get(old.id) or old

    async def _current_runs(self, caller: Caller, agent_id: str) -> Sequence[CurrentRun]:
        """The runs that the caller may be in: only an agent can be in one, never a person or an admin."""
        if is_schedules_admin(caller) or not rights.names_agent(caller):
            return ()
        run = await self.store.under_way(agent_id)
        if run is None or (caller.user_id is not None and run.user_id != caller.user_id):
            return ()
        return (CurrentRun(run.id, run.schedule_id, run.recurring),)

    async def _creating_run(self, caller: Caller, new: ScheduleDefinition) -> str | None:
        """The run that creates the schedule, if any; raises an error if that run may not create it."""
        runs = await self._current_runs(caller, new.agent_id)
        if not runs:
            return None
        made = await self.store.count(ScheduleFilter(states=tuple(ScheduleState), made_by=runs[0].delivery_id))
        check_may_schedule(runs, made, recurring=_definition_recurs(new))
        return runs[0].delivery_id

    def _check_webhook(self, new: ScheduleDefinition) -> None:
        if new.forward.webhook is not None:
            check_webhook(new.forward.webhook, signed=self.webhooks.signed, private=self.webhooks.private)


def _require_first_fire(trigger: Trigger, now: int) -> int:
    found = first_fire(trigger, now)
    if found is None:
        raise AssertionError("a rule that was read fires at least once")
    return found


def _new_intended_us(old: Schedule, new: ScheduleDefinition, now: int) -> int | None:
    """The next time of a changed schedule; None if the change does not affect it."""
    if new.trigger != old.what.trigger:
        return _require_first_fire(new.trigger, now)
    # The last run is active, and no other run was to follow.
    goes_on = old.intended_us is None and new.max_repetitions != old.what.max_repetitions
    return next_fire_after(new.trigger, now) if goes_on else None


def _definition_recurs(what: ScheduleDefinition) -> bool:
    return is_recurring(what.trigger, what.max_repetitions)


def open_schedules(
    settings: Settings,
    database: Database,
    host: AgentHost,
    upload: UploadTool | None,
    registry: CollectorRegistry,
    tasks: TaskGroup,
    keeps_conversation: KeepsConversation,
) -> tuple[ScheduleService, Worker]:
    """Open the service and the worker; a process that delivers prompts runs the worker in its own task."""
    notifier, metrics, authorities = (
        WakeupNotifier(database),
        ScheduleMetrics(registry),
        AuthorityService(KeyStore(database)),
    )
    store, past = ScheduleStore(database, notifier), HistoryStore(database, notifier)
    limits = ScheduleLimits(settings.schedule_limit, settings.schedule_shortest, settings.schedule_longest_prompt)
    worker = Worker(
        database,
        make_deliver(host, authorities),
        notifier,
        concurrency=settings.worker_concurrency,
        keep_days=settings.journal_days,
        metrics=metrics,
        webhooks=WebhookForwarder(WebhookStore(database), settings.webhook_secret, private=settings.webhook_private),
    )
    executor = ScheduleExecutor(
        worker=worker,
        store=store,
        past=past,
        metrics=metrics,
        autostart=settings.delivers_prompts,
        interval_s=settings.executor_interval,
        concurrency=settings.worker_concurrency,
        on_demand=OnDemandRuns(tasks, worker.deliver_due),
    )
    schedule_host = ScheduleHost(host, settings.letta_base_url, upload, settings.letta_secret is not None)
    present = {name: clean_agent_id(os.environ.get(name)) is not None for name in variable_names("default_agent_id")}
    service = ScheduleService(
        store=store,
        queries=ScheduleQueries(store, past),
        overview=ScheduleOverview(OverviewStore(database), past),
        limits=limits,
        webhooks=WebhookOptions(settings.webhook_secret is not None, settings.webhook_private),
        conversations=ConversationChooser(host, ChatSessionStore(database), keeps_conversation),
        defaults=DefaultAgents(
            DefaultAgentStore(database),
            schedule_host.validate,
            present,
            single_agent_fallback=settings.single_agent_fallback,
        ),
        host=schedule_host,
        executor=executor,
        importer=PromptYoSelfImporter(store, limits, host),
        authorities=authorities,
    )
    return service, worker
