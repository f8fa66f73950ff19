"""Counts Prometheus metrics from journal entries, off the request path."""

from collections import Counter as Tally
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

from frontdesk import __version__
from frontdesk.journal.model import EntryKind, JournalEntry, Outcome

# Turns off a second series per counter with the time of its creation, which most readers do not need.
disable_created_metrics()

DURATION_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The Prometheus registry of one process. `count` takes a batch of entries."""

    def __init__(self) -> None:
        self._registry = self.registry = CollectorRegistry()
        Gauge("frontdesk_info", "Always 1.", ["version"], registry=self._registry).labels(__version__).set(1)
        self._calls = Counter(
            "frontdesk_calls",
            "Calls by tool or route.",
            ["surface", "action", "outcome"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "frontdesk_call_seconds",
            "Time a call took.",
            ["surface", "action"],
            buckets=DURATION_BUCKETS,
            registry=self._registry,
        )
        self._sources = Counter(
            "frontdesk_agent_id_source",
            "Where calls' agent ids came from.",
            ["source", "verified"],
            registry=self._registry,
        )
        self._refusals = Counter(
            "frontdesk_refusals",
            "Calls refused, by reason (AgentIdMismatch, InvalidAgentId, MissingAgentId, Denied, RateLimited, …) and by "
            "what the agent's id came by.",
            ["reason", "source"],
            registry=self._registry,
        )
        self._lost = Counter(
            "frontdesk_journal_lost", "Entries that found the journal's queue full.", registry=self._registry
        )

    def count(self, entries: Iterable[JournalEntry]) -> None:
        took: dict[tuple[str, str], Histogram] = {}
        calls: Tally[tuple[str, str, str]] = Tally()
        sources: Tally[tuple[str, str]] = Tally()
        for entry in entries:
            action = _action_label(entry)
            calls[entry.surface, action, entry.outcome] += 1
            sources[entry.source, str(entry.verified).lower()] += 1
            this = entry.surface, action
            if this not in took:
                took[this] = self._seconds.labels(*this)
            took[this].observe(entry.duration_us / 1_000_000)
            if entry.reason and entry.outcome is not Outcome.FAILED:
                self._refusals.labels(entry.reason, entry.source).inc()
        for labels, number in calls.items():
            self._calls.labels(*labels).inc(number)
        for labels, number in sources.items():
            self._sources.labels(*labels).inc(number)

    def count_lost(self) -> None:
        self._lost.inc()

    def render(self) -> bytes:
        return generate_latest(self._registry)


def _action_label(entry: JournalEntry) -> str:
    """Tools are counted per server, because each of perhaps a hundred thousand tools would be a separate series."""
    return entry.action.partition("::")[0] if entry.kind is EntryKind.TOOL else entry.action
