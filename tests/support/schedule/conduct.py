"""What must hold of the deliveries themselves, as the receiver saw them: their time, their number and their order."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise

from frontdesk.schedules.model import Misfire, Overlap, ScheduleDefinition, TriggerKind
from tests.support.schedule.history import Arrival, History, by_delivery
from tests.support.schedule.manners import REFUSALS, How

Made = Mapping[int, ScheduleDefinition]
NEVER = 1 << 62


def early(history: History, _made: Made) -> Iterator[str]:
    for arrival in history.arrivals:
        if arrival.began_us < arrival.intended_us:
            yield f"{arrival.id} came {arrival.intended_us - arrival.began_us} us early"


def late_start(history: History, _made: Made) -> Iterator[str]:
    """Nothing of a schedule is begun, or begun again, once its cancel was acknowledged."""
    for cancel in history.diary.cancelled:
        for row in history.occurrences:
            if row["schedule_id"] == cancel.schedule_id and (row["started_us"] or 0) > cancel.at_us:
                yield f"{row['id']} was claimed {row['started_us'] - cancel.at_us} us after the cancel"
        for arrival in history.arrivals:
            after = arrival.schedule_id == cancel.schedule_id and arrival.began_us > cancel.at_us
            if after and (arrival.id, arrival.fence) not in cancel.fences:
                yield f"{arrival.id} was begun under fence {arrival.fence} after the cancel"


def begun_twice(history: History, _made: Made) -> Iterator[str]:
    """Sent again only where the first came to nothing, or its worker was lost before it could tell."""
    for name, seen in by_delivery(history.arrivals).items():
        fences = [one.fence for one in seen]
        if len(set(fences)) < len(fences):
            yield f"{name} was sent twice under one fence: {fences}"
        for first, second in pairwise(one for one in seen if not _is_stale(history, one)):
            if not _has_cause(history, first, second):
                yield f"{name} went well in attempt {first.attempt}, and was sent again by {second.worker}"


def _has_cause(history: History, first: Arrival, second: Arrival) -> bool:
    if first.how in (How.CUT, How.DROP, *REFUSALS) or _lost_at(history, first) < NEVER:
        return True
    # It had no answer yet, and its worker gave it up for a new attempt.
    unanswered = first.ended_ns is None or first.ended_ns > second.began_ns
    return unanswered and second.attempt > first.attempt


def crowded(history: History, made: Made) -> Iterator[str]:
    """At most one under way for an agent: the next begins when the one before has ended, or its worker was lost."""
    for agent, seen in _serial(history, made).items():
        for first, second in pairwise(seen):
            if _end(history, first, second) > second.began_ns:
                yield f"{agent} got {second.id} while {first.id} was under way"


def disorder(history: History, made: Made) -> Iterator[str]:
    """In the order of their times; and one that is begun is brought to its end before the next."""
    begun_us = {row["id"]: row["created_us"] for row in history.occurrences}
    for agent, seen in _serial(history, made).items():
        groups = [seen[0].id, *(second.id for first, second in pairwise(seen) if first.id != second.id)]
        for name, count in Counter(groups).items():
            if count > 1:
                yield f"{agent} went back to {name} after another"
        for queue in _queues(seen, made):
            for first, second in pairwise(queue):
                known_us = history.diary.known_us.get(second.schedule_id, 0)
                # Who comes when another has the agent already, or is being given it, waits.
                if second.intended_us < first.intended_us and known_us < begun_us.get(first.id, 0):
                    yield f"{agent} got {first.id} before {second.id}"


def _queues(seen: list[Arrival], made: Made) -> Iterator[list[Arrival]]:
    """Those that are in order among themselves: an agent's that leave nothing out, and each schedule's own."""
    by_schedule: dict[int, list[Arrival]] = defaultdict(list)
    for one in seen:
        by_schedule[one.schedule_id].append(one)
    yield from by_schedule.values()
    yield [one for one in seen if _leaves_nothing_out(made[one.schedule_id])]


def _leaves_nothing_out(new: ScheduleDefinition) -> bool:
    policy = new.policy
    every_one = policy.misfire is Misfire.ALL and policy.overlap is not Overlap.SKIP and policy.max_late_s is None
    return (every_one or new.trigger.kind is TriggerKind.ONCE) and not new.trigger.jitter_s


def _serial(history: History, made: Made) -> dict[str, list[Arrival]]:
    """The deliveries to each agent that must not meet, as far as those who made them still held them."""
    found: dict[str, list[Arrival]] = defaultdict(list)
    manual = {row["id"] for row in history.occurrences if row["manual"]}
    for one in history.arrivals:
        serial = made[one.schedule_id].policy.overlap is not Overlap.ALLOW
        if serial and one.id not in manual and not _is_stale(history, one):
            found[one.agent].append(one)
    return found


def _end(history: History, first: Arrival, second: Arrival) -> int:
    """When whoever made the first was done with it."""
    end = min(NEVER if first.ended_ns is None else first.ended_ns, _lost_at(history, first))
    gave_up = first.id == second.id and second.attempt > first.attempt
    return min(end, second.began_ns) if gave_up else end


def _lost_at(history: History, arrival: Arrival) -> int:
    """When the one who made it was lost, or the receiver itself."""
    lost = [one.ns for one in history.diary.lost if one.worker == arrival.worker and one.ns >= arrival.began_ns]
    ends = [at for at in history.diary.receiver_killed if at >= arrival.began_ns and arrival.ended_ns is None]
    return min(lost + ends, default=NEVER)


def _is_stale(history: History, arrival: Arrival) -> bool:
    """Whether it came from a worker that had been lost by then: sent before, or by one that was held still."""
    return any(one.worker == arrival.worker and one.ns < arrival.began_ns for one in history.diary.lost)
