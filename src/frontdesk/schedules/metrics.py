"""Reports deliveries to Prometheus and to the log; never a prompt, never an answer."""

from collections import Counter as collections_Counter
from collections.abc import Sequence

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from frontdesk.schedules.delivery_rules import SettledRun
from frontdesk.schedules.history_store import ScheduleFigures
from frontdesk.schedules.model import SECOND, Occurrence, RunStatus

LATENESS_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)


class ScheduleMetrics:
    """Counts what this process' workers do; what the database knows is shown by whoever reads it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"frontdesk_schedule_{name}", text, registry=registry)

        self._lateness = Histogram(
            "frontdesk_schedule_lateness_seconds",
            "How long after its time a prompt was begun.",
            buckets=LATENESS_BUCKETS,
            registry=registry,
        )
        self._attempts = Counter(
            "frontdesk_schedule_attempts",
            "Attempts that ended, by how: delivered, waiting (to be tried again) or dead.",
            ["standing"],
            registry=registry,
        )
        self._in_flight = gauge("in_flight", "Deliveries under way in this process.")
        self._due = gauge("due", "Schedules whose time has come and that nobody has begun.")
        self._overdue = gauge("oldest_overdue_seconds", "How late the latest of them is.")
        self._running = gauge("running", "Deliveries under way anywhere.")
        self._waiting = gauge("waiting", "Deliveries that wait for another attempt.")
        self._dead = gauge("dead_letters", "Deliveries that were given up.")

    def count_started(self, claimed: Sequence[Occurrence]) -> None:
        for one in claimed:
            if one.fence == 1:
                self._lateness.observe(max(0, one.started_us - one.due_us) / SECOND)

    def count_ended(self, kept: Sequence[SettledRun]) -> None:
        for standing in (RunStatus.DELIVERED, RunStatus.WAITING, RunStatus.DEAD):
            if number := sum(one.standing is standing for one in kept):
                self._attempts.labels(standing.value).inc(number)

    def set_in_flight(self, number: int) -> None:
        self._in_flight.set(number)

    def set_figures(self, figures: ScheduleFigures) -> None:
        self._due.set(figures.due)
        self._overdue.set(figures.oldest_overdue_us / SECOND)
        self._running.set(figures.running)
        self._waiting.set(figures.waiting)
        self._dead.set(figures.dead)


# When more end at once, a line for each would take longer than they did; history and journal have them all.
LOGGED_ONE_BY_ONE = 10

log = structlog.get_logger("frontdesk.schedules")


def log_ended(ended: Sequence[SettledRun]) -> None:
    """One line for each attempt that ended, or one for all when they are many."""
    if len(ended) > LOGGED_ONE_BY_ONE:
        _log_many_ended(ended)
        return
    for one in ended:
        told: dict[str, object] = {
            "delivery_id": one.occurrence.id,
            "schedule_id": one.occurrence.schedule_id,
            "agent_id": one.occurrence.agent_id,
            "attempt": one.occurrence.attempt,
            "late_ms": max(0, one.occurrence.started_us - one.occurrence.due_us) // 1000,
            "took_ms": one.took_us // 1000,
        }
        if one.standing is RunStatus.DELIVERED:
            log.info("prompt_delivered", **told)
        elif one.standing is RunStatus.WAITING:
            log.warning("prompt_failed", **told, error=one.error, again_s=one.wait_us // SECOND)
        else:
            log.error("prompt_dead", **told, error=one.error)


def _log_many_ended(ended: Sequence[SettledRun]) -> None:
    """As loud as the worst of them would have been alone."""
    stood = collections_Counter(one.standing for one in ended)
    delivered, failed = stood[RunStatus.DELIVERED], stood[RunStatus.WAITING]
    dead = len(ended) - delivered - failed
    say = log.error if dead else log.warning if failed else log.info
    say("prompts_ended", delivered=delivered, failed=failed, dead=dead)
