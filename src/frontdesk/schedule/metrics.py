"""The schedule's figures for Prometheus."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from frontdesk.schedule.due.model import Settled
from frontdesk.schedule.model import SECOND, Occurrence, Standing
from frontdesk.schedule.past.store import Figures

LATENESS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)


class ScheduleMetrics:
    """Counts what this process' workers do; what the database knows is shown by whoever reads it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"frontdesk_schedule_{name}", text, registry=registry)

        self._lateness = Histogram(
            "frontdesk_schedule_lateness_seconds",
            "How long after its time a prompt was begun.",
            buckets=LATENESS,
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

    def begun(self, claimed: Sequence[Occurrence]) -> None:
        for one in claimed:
            if one.fence == 1:
                self._lateness.observe(max(0, one.started_us - one.due_us) / SECOND)

    def ended(self, kept: Sequence[Settled]) -> None:
        for standing in (Standing.DELIVERED, Standing.WAITING, Standing.DEAD):
            if number := sum(one.standing is standing for one in kept):
                self._attempts.labels(standing.value).inc(number)

    def in_flight(self, number: int) -> None:
        self._in_flight.set(number)

    def show(self, figures: Figures) -> None:
        self._due.set(figures.due)
        self._overdue.set(figures.oldest_overdue_us / SECOND)
        self._running.set(figures.running)
        self._waiting.set(figures.waiting)
        self._dead.set(figures.dead)
