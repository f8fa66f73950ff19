"""Tests schedules created, changed and imported through the service, on both databases."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from frontdesk.errors import Conflict, Denied, FrontdeskError, Invalid, MissingAgentId, MissingScope, NotFound
from frontdesk.identity.model import Caller
from frontdesk.schedules.create import ScheduleLimits
from frontdesk.schedules.model import SECOND, RunStatus, ScheduleDefinition, ScheduleState, Trigger, TriggerKind, now_us
from frontdesk.schedules.requests import ListRuns, ListSchedules, NewSchedule, RuleDescription, ScheduleChange
from frontdesk.schedules.store import MAX_MANUAL_RUNS, StaleSchedule
from tests.requirements import shows
from tests.stores.schedules.conftest import HOUR_US, Installation, agent, begun, person, program
from tests.support.scheduling import OPERATOR, reminder, schedule, write

# Schedules created, changed and read through the service


async def test_a_schedule_is_made_and_its_rule_said_back(installation: Installation) -> None:
    added = await installation.schedules.add(
        agent(installation.ada), NewSchedule("Stand up", when="every weekday at 9 Berlin time")
    )
    assert added.schedule.what.agent_id == installation.ada
    assert added.schedule.state is ScheduleState.ACTIVE
    assert added.rule.facts["rule"] == "cron 0 9 * * MON-FRI"
    assert added.rule.facts["zone"] == "Europe/Berlin"
    assert "Europe/Berlin" in added.rule.sentence
    assert await installation.schedules.queries.get(agent(installation.ada), str(added.schedule.id)) == added.schedule


@shows("SCHEDULE-ERRORS")
async def test_an_agent_that_the_host_does_not_know_is_refused_unless_told_not_to_look(
    installation: Installation,
) -> None:
    with pytest.raises(Invalid, match="Agent validation failed: agent 'agent-x' is not known to the agent host"):
        await installation.schedules.add(OPERATOR, NewSchedule("Hi", "agent-x", every="5m"))
    added = await installation.schedules.add(OPERATOR, NewSchedule("Hi", "agent-x", every="5m", skip_validation=True))
    assert added.schedule.what.agent_id == "agent-x"


@shows("SCHEDULE-ERRORS")
async def test_without_any_agent_there_is_nobody_to_schedule_for(installation: Installation) -> None:
    for caller in (OPERATOR, person("ann"), Caller("1", verified=True)):
        with pytest.raises(MissingAgentId):
            await installation.schedules.add(caller, NewSchedule("Hi", every="5m"))
    with pytest.raises(MissingAgentId):
        await installation.schedules.add(OPERATOR, NewSchedule("Hi", "null", every="5m"))


@shows("SCHEDULE-OWN")
async def test_nobody_schedules_for_an_agent_that_is_not_their_own(installation: Installation) -> None:
    asked = NewSchedule("Hi", installation.bob, every="5m")
    for caller in (agent(installation.ada), agent(installation.ada, "ann"), person("ann")):
        with pytest.raises(Denied):
            await installation.schedules.add(caller, asked)
    for caller in (OPERATOR, agent(installation.bob), Caller("1", verified=True, any_agent=True)):
        await installation.schedules.add(caller, asked)
    assert len((await installation.schedules.queries.list(OPERATOR)).schedules) == 3


async def test_a_credential_for_other_things_plans_and_reads_nothing(installation: Installation) -> None:
    limited = replace(agent(installation.ada), scopes=frozenset({"tools:call"}))
    with pytest.raises(MissingScope, match="schedules:write"):
        await installation.schedules.add(limited, NewSchedule("Hi", every="5m"))
    with pytest.raises(MissingScope, match="schedules:read"):
        await installation.schedules.queries.list(limited)


@shows("SCHEDULE-LIMITS")
async def test_an_agent_has_as_many_schedules_as_it_may_and_no_more_however_many_ask_at_once(
    installation: Installation,
) -> None:
    schedules = replace(installation.schedules, limits=ScheduleLimits(count=3))
    outcomes: list[FrontdeskError | None] = []

    async def one() -> None:
        try:
            await schedules.add(agent(installation.ada), NewSchedule("Hi", every="5m"))
        except Conflict as error:
            outcomes.append(error)
        else:
            outcomes.append(None)

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(one)
    assert outcomes.count(None) == 3
    await schedules.add(agent(installation.bob), NewSchedule("Hi", every="5m"))
    first, *_ = (await schedules.queries.list(agent(installation.ada))).schedules
    await schedules.cancel(agent(installation.ada), first.id)
    await schedules.add(agent(installation.ada), NewSchedule("Hi", every="5m"))


@shows("SCHEDULE-LIMITS")
async def test_a_run_of_a_repeating_schedule_makes_no_other_that_repeats(installation: Installation) -> None:
    mine = await installation.put(installation.ada, due_us=now_us() - SECOND)
    (run,) = await begun(installation)
    with pytest.raises(Conflict, match=f"scheduled run of schedule {mine.id}, which repeats by itself"):
        await installation.schedules.add(agent(installation.ada), NewSchedule("Each Monday…", cron="0 9 * * MON"))
    once = [NewSchedule("Once", time=f"in {number} hours") for number in (1, 2, 3)]
    planned = [(await installation.schedules.add(agent(installation.ada), asked)).schedule for asked in once]
    assert {one.what.made_by for one in planned} == {run.id}
    with pytest.raises(Conflict, match="has made 3 schedules"):
        await installation.schedules.add(agent(installation.ada), NewSchedule("Once", time="in 9 hours"))
    with pytest.raises(Conflict, match="repeats by itself"):
        await installation.schedules.update(agent(installation.ada), planned[0].id, ScheduleChange(every="1h"))
    with pytest.raises(Conflict, match="cannot start another"):
        await installation.schedules.run_now(agent(installation.ada), mine.id)


async def test_the_guard_leaves_people_and_other_agents_alone(installation: Installation) -> None:
    await installation.put(installation.ada, due_us=now_us() - SECOND)
    await begun(installation)
    rule = NewSchedule("Each Monday…", installation.ada, cron="0 9 * * MON")
    made = await installation.schedules.add(OPERATOR, rule)
    assert made.schedule.what.made_by is None
    await installation.schedules.add(agent(installation.bob), replace(rule, agent_id=installation.bob))


async def test_a_persons_prompts_are_said_in_a_conversation_of_their_own(installation: Installation) -> None:
    ann, ben = agent(installation.ada, "ann"), agent(installation.ada, "ben")
    hers = (await installation.schedules.add(ann, NewSchedule("Mine", every="5m"))).schedule.what.conversation_id
    his = (await installation.schedules.add(ben, NewSchedule("His", every="5m"))).schedule.what.conversation_id
    assert hers is not None
    assert hers != his
    for conversation in (hers, "conv-nowhere"):
        with pytest.raises(NotFound, match="has no conversation"):
            await installation.schedules.add(ben, NewSchedule("Tell me", every="5m", conversation_id=conversation))
    with pytest.raises(Invalid, match="Agent validation failed"):
        await installation.schedules.add(
            replace(ann, agent_id="agent-x"), NewSchedule("Hi", every="5m", skip_validation=True)
        )


async def test_a_person_may_have_prompts_in_a_session_of_theirs(installation: Installation) -> None:
    ann = agent(installation.ada, "ann")
    session = (await installation.app.chat.open(ann, installation.ada)).session
    added = await installation.schedules.add(
        ann, NewSchedule("Hi", every="5m", conversation_id=session.conversation_id)
    )
    assert added.schedule.what.conversation_id == session.conversation_id
    with pytest.raises(NotFound):
        await installation.schedules.update(
            agent(installation.bob, "ann"),
            (
                await installation.schedules.add(agent(installation.bob, "ann"), NewSchedule("Hi", every="5m"))
            ).schedule.id,
            ScheduleChange(conversation_id=session.conversation_id),
        )


async def test_an_agents_prompts_stay_in_conversations_of_that_agent(installation: Installation) -> None:
    theirs = await installation.app.host.start_conversation(installation.bob)
    with pytest.raises(NotFound):
        await installation.schedules.add(
            agent(installation.ada), NewSchedule("Hi", every="5m", conversation_id=theirs.id)
        )
    own = await installation.app.host.start_conversation(installation.ada)
    added = await installation.schedules.add(
        agent(installation.ada), NewSchedule("Hi", every="5m", conversation_id=own.id)
    )
    assert added.schedule.what.conversation_id == own.id
    plain = await installation.schedules.add(agent(installation.ada), NewSchedule("Hi", every="5m"))
    assert plain.schedule.what.conversation_id is None


async def test_a_list_leaves_out_what_is_over_and_goes_on_where_it_ended(installation: Installation) -> None:
    ids = [(await installation.put(installation.ada)).id for _ in range(5)]
    await installation.schedules.cancel(agent(installation.ada), ids[0])
    await installation.schedules.pause(agent(installation.ada), ids[1])
    page = await installation.schedules.queries.list(agent(installation.ada), ListSchedules(limit=3))
    assert ([one.id for one in page.schedules], page.next) == (ids[1:4], ids[3])
    rest = await installation.schedules.queries.list(agent(installation.ada), ListSchedules(limit=3, after_id=ids[3]))
    assert ([one.id for one in rest.schedules], rest.next) == (ids[4:], None)
    everything = await installation.schedules.queries.list(
        agent(installation.ada), ListSchedules(include_cancelled=True)
    )
    assert [one.id for one in everything.schedules] == ids
    paused = await installation.schedules.queries.list(
        agent(installation.ada), ListSchedules(state=ScheduleState.PAUSED)
    )
    assert [one.id for one in paused.schedules] == ids[1:2]


@shows("SCHEDULE-ERRORS")
async def test_what_is_cancelled_cannot_be_cancelled_again(installation: Installation) -> None:
    made = await installation.put(installation.ada)
    cancelled = await installation.schedules.cancel(agent(installation.ada), made.id)
    assert cancelled.state is ScheduleState.CANCELLED
    for gone in (made.id, 424242):
        with pytest.raises(NotFound) as refused:
            await installation.schedules.cancel(agent(installation.ada), gone)
        assert str(refused.value) == f"Schedule {gone} not found or already cancelled"
    with pytest.raises(Invalid, match="Schedule ID must be a number"):
        await installation.schedules.cancel(agent(installation.ada), "first")


async def test_a_schedule_is_paused_and_goes_on(installation: Installation) -> None:
    made = await installation.put(installation.ada, due_us=now_us() - 90 * 60 * SECOND)
    assert (await installation.schedules.pause(agent(installation.ada), made.id)).state is ScheduleState.PAUSED
    with pytest.raises(Conflict, match="is paused; only an active one"):
        await installation.schedules.pause(agent(installation.ada), made.id)
    resumed = (await installation.schedules.resume(agent(installation.ada), made.id)).schedule
    assert resumed.state is ScheduleState.ACTIVE
    assert resumed.intended_us is not None
    assert resumed.intended_us > now_us()
    with pytest.raises(Conflict, match="is active; only a paused one"):
        await installation.schedules.resume(agent(installation.ada), made.id)


async def test_a_change_in_place_keeps_the_number_and_counts_from_now(installation: Installation) -> None:
    made = await installation.put(installation.ada)
    told = await installation.schedules.update(
        agent(installation.ada), made.id, ScheduleChange(prompt="Pong", every="2h")
    )
    assert (told.schedule.id, told.schedule.what.prompt) == (made.id, "Pong")
    assert told.rule.facts["rule"] == "every 2h"
    assert told.schedule.intended_us is not None
    assert told.schedule.intended_us > now_us() + HOUR_US
    same = await installation.schedules.update(agent(installation.ada), made.id, ScheduleChange(prompt="Ping"))
    assert same.schedule.intended_us == told.schedule.intended_us
    await installation.schedules.cancel(agent(installation.ada), made.id)
    with pytest.raises(Conflict, match="cannot be changed any more"):
        await installation.schedules.update(agent(installation.ada), made.id, ScheduleChange(prompt="Too late"))


async def test_a_higher_maximum_goes_on_after_what_was_to_be_the_last_run(installation: Installation) -> None:
    asked = NewSchedule("Hi", every="1h", max_repetitions=1)
    made = (await installation.schedules.add(agent(installation.ada), asked)).schedule
    due = replace(made.what, trigger=replace(made.what.trigger, start_us=now_us() - SECOND))
    await installation.schedules.store.update(made.id, due, now_us() - SECOND, now_us())
    await begun(installation)
    assert (await installation.schedules.queries.get(OPERATOR, made.id)).intended_us is None
    more = (await installation.schedules.update(OPERATOR, made.id, ScheduleChange(max_repetitions=2))).schedule
    assert more.intended_us is not None
    assert more.intended_us > now_us()


async def test_a_preview_tells_as_many_times_as_are_left(installation: Installation) -> None:
    asked = NewSchedule("Hi", every="1h", max_repetitions=3)
    made = (await installation.schedules.add(agent(installation.ada), asked)).schedule
    shown = await installation.schedules.queries.preview(agent(installation.ada), made.id, 10)
    assert list(shown.times) == [made.intended_us + number * HOUR_US for number in range(3) if made.intended_us]
    assert len((await installation.schedules.queries.preview_rule(person("ann"), asked, 2)).times) == 2
    await installation.schedules.cancel(agent(installation.ada), made.id)
    assert list((await installation.schedules.queries.preview(agent(installation.ada), made.id)).times) == []


async def test_webhooks_need_a_secret_to_be_signed_with(installation: Installation) -> None:
    with pytest.raises(Invalid, match="FRONTDESK_WEBHOOK_SECRET"):
        await installation.schedules.add(
            agent(installation.ada), NewSchedule("Hi", every="5m", webhook="https://example.com/hook")
        )
    made = await installation.put(installation.ada)
    with pytest.raises(Invalid, match="FRONTDESK_WEBHOOK_SECRET"):
        await installation.schedules.update(
            agent(installation.ada), made.id, ScheduleChange(webhook="https://example.com/hook")
        )


async def test_a_run_on_demand_is_delivered_and_told_of(installation: Installation) -> None:
    made = await installation.put(installation.ada)
    run = await installation.schedules.run_now(agent(installation.ada), made.id)
    (done,) = await installation.schedules.executor.run_due(program(installation.ada))
    assert (done.id, done.delivery_id, done.delivered, done.error) == (made.id, run, True, None)
    (past,) = (
        await installation.schedules.queries.history(agent(installation.ada), ListRuns(schedule_id=made.id))
    ).runs
    assert (past.id, past.standing, past.manual) == (run, RunStatus.DELIVERED, True)
    assert past.answer is not None
    assert "offline stand-in" in past.answer


async def test_what_is_due_is_executed_once_and_told_in_full(installation: Installation) -> None:
    asked = NewSchedule("Hi", every="1h", max_repetitions=2)
    made = (await installation.schedules.add(agent(installation.ada), asked)).schedule
    earlier = replace(made.what, trigger=replace(made.what.trigger, start_us=now_us() - SECOND))
    await installation.schedules.store.update(made.id, earlier, now_us() - SECOND, now_us())
    (done,) = await installation.schedules.executor.run_due(OPERATOR)
    assert (done.repetition_count, done.max_repetitions, done.completed) == (1, 2, False)
    assert done.next_us is not None
    assert done.next_us > now_us()
    assert list(await installation.schedules.executor.run_due(OPERATOR)) == []


async def test_a_loop_is_bounded_and_tells_of_every_round(installation: Installation) -> None:
    await installation.put(installation.ada, due_us=now_us() - SECOND)
    rounds: list[tuple[int, int]] = []

    async def told(number: int, ran: object) -> None:
        rounds.append((number, len(ran)))  # pyright: ignore[reportArgumentType] - a sequence

    with anyio.fail_after(30):
        assert await installation.schedules.executor.loop(OPERATOR, 1, 1, told) == 1
    assert rounds == [(1, 1)]
    with pytest.raises(Invalid, match="Interval must be a number"):
        await installation.schedules.executor.loop(OPERATOR, "often")


async def test_a_run_of_an_agent_that_is_not_there_is_a_dead_letter_that_can_be_tried_again(
    installation: Installation,
) -> None:
    made = await installation.put("agent-x", due_us=now_us() - SECOND)
    (done,) = await installation.schedules.executor.run_due(OPERATOR)
    assert not done.delivered
    assert done.error
    (dead,) = (await installation.schedules.queries.history(OPERATOR, ListRuns(standing=RunStatus.DEAD))).runs
    assert dead.schedule_id == made.id
    assert (await installation.schedules.redrive(OPERATOR, dead.id)).standing is RunStatus.WAITING
    with pytest.raises(Conflict, match="only a dead one"):
        await installation.schedules.redrive(OPERATOR, dead.id)


async def test_the_executor_tells_an_admin_of_everything_and_others_of_itself(installation: Installation) -> None:
    await installation.put("agent-x", due_us=now_us() - SECOND)
    told = await installation.schedules.executor.state(OPERATOR)
    assert (told.running, told.due, told.dead) == (False, 1, 0)
    assert told.concurrency == installation.app.settings.worker_concurrency
    narrow = await installation.schedules.executor.state(agent(installation.ada))
    assert (narrow.due, narrow.dead, narrow.next_us) == (None, None, None)


async def test_figures_are_measured_for_the_metrics(installation: Installation) -> None:
    await installation.put("agent-x", due_us=now_us() - SECOND)
    await installation.schedules.executor.update_metrics()
    shown = installation.app.journal.render_metrics().decode()
    assert "frontdesk_schedule_due 1.0" in shown


async def test_a_schedule_in_a_zone_that_is_not_known_here_is_shown_and_can_be_mended(
    installation: Installation,
) -> None:
    await installation.put(installation.ada)
    odd = Trigger(TriggerKind.CRON, "0 9 * * *", "Moon/Base")
    at = now_us() + HOUR_US
    made = await installation.schedules.store.add(ScheduleDefinition(installation.ada, "Ping", odd), at, now_us())
    listed = (await installation.schedules.queries.list(OPERATOR)).schedules
    told = [RuleDescription.of(one.what.trigger, one.intended_us) for one in listed]
    assert (told[1].facts["zone"], told[1].facts["next_local"]) == ("Moon/Base", None)
    assert told[1].sentence.endswith("in a zone that is not known here")
    with pytest.raises(Invalid, match="Unknown time zone: Moon/Base"):
        await installation.schedules.queries.preview(OPERATOR, made.id)
    mended = await installation.schedules.update(OPERATOR, made.id, ScheduleChange(zone="Europe/Berlin"))
    assert mended.schedule.what.trigger.zone == "Europe/Berlin"
    await installation.schedules.cancel(OPERATOR, made.id)


# Concurrent changes: none is lost, and retries of manual runs have an end


async def test_two_changes_at_once_are_both_made(installation: Installation) -> None:
    ada, made = agent(installation.ada), await installation.put(installation.ada)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(installation.schedules.update, ada, made.id, ScheduleChange(prompt="Pong"))
        tasks.start_soon(installation.schedules.update, ada, made.id, ScheduleChange(attempts=3))
        tasks.start_soon(installation.schedules.update, ada, made.id, ScheduleChange(misfire="all"))
    found = (await installation.schedules.queries.get(ada, made.id)).what
    assert (found.prompt, found.policy.attempts, found.policy.misfire) == ("Pong", 3, "all")


async def test_what_was_changed_since_it_was_read_is_not_written_over(installation: Installation) -> None:
    made, store = await installation.put(installation.ada), installation.schedules.store
    await store.update(made.id, replace(made.what, prompt="Pong"), None, now_us(), made)
    with pytest.raises(StaleSchedule):
        await store.update(made.id, replace(made.what, prompt="Ping!"), None, now_us(), made)


async def test_runs_by_hand_are_only_so_many_at_a_time(installation: Installation) -> None:
    ada, made = agent(installation.ada), await installation.put(installation.ada)
    for _ in range(MAX_MANUAL_RUNS):
        await installation.schedules.run_now(ada, made.id)
    with pytest.raises(Conflict, match=f"{MAX_MANUAL_RUNS} runs of agent"):
        await installation.schedules.run_now(ada, made.id)


async def test_an_answer_for_a_timeline_is_refused_as_long_as_there_is_none(installation: Installation) -> None:
    ada, made = agent(installation.ada), await installation.put(installation.ada)
    for ask in (
        installation.schedules.update(ada, made.id, ScheduleChange(timeline=True)),
        installation.schedules.add(agent(installation.ada, "ann"), NewSchedule("Ping", every="1h", timeline=True)),
    ):
        with pytest.raises(Invalid, match="There is no timeline yet"):
            await ask
    unchanged = await installation.schedules.update(ada, made.id, ScheduleChange(timeline=False))
    assert not unchanged.schedule.what.forward.timeline


async def test_an_agent_does_not_plan_into_a_persons_conversation(installation: Installation) -> None:
    view = await installation.app.chat.open(person("ann"), installation.ada)
    with pytest.raises(NotFound, match="no conversation"):
        await installation.schedules.add(
            agent(installation.ada), NewSchedule("Ping", every="1h", conversation_id=view.session.conversation_id)
        )


# A PromptYoSelf file imported into either database


def soon() -> str:
    return f"{datetime.now(UTC) + timedelta(hours=1):%Y-%m-%d %H:%M:%S}"


@shows("SCHEDULE-IMPORT")
async def test_a_file_is_taken_over_once_however_often_it_is_read(installation: Installation, tmp_path: Path) -> None:
    good = [
        reminder(),
        reminder(
            schedule_type="interval", schedule_value="30m", next_run=soon(), max_repetitions=5, repetition_count=2
        ),
        reminder(schedule_type="once", schedule_value=soon(), next_run=soon()),
    ]
    file = write(tmp_path / "old.db", [*good, reminder(active=0)], [schedule(prompt_text="From before")])
    first = await installation.schedules.importer.import_file(OPERATOR, file)
    assert (len(first.made), first.known) == (4, 0)
    assert first.left_out == [("unified_reminders 4", "it is not active any more")]
    found = (await installation.schedules.queries.list(OPERATOR)).schedules
    assert [one.id for one in found] == list(first.made)
    assert [(one.fired, one.what.max_repetitions) for one in found] == [(0, None), (2, 5), (0, None), (0, None)]
    await installation.schedules.cancel(OPERATOR, first.made[0])

    moved = file.rename(tmp_path / "moved.db")
    again = await installation.schedules.importer.import_file(OPERATOR, moved)
    assert (list(again.made), again.known) == ([], 4)
    everything = await installation.schedules.queries.list(OPERATOR, ListSchedules(include_cancelled=True))
    assert len(everything.schedules) == 4


@shows("SCHEDULE-IMPORT")
async def test_a_damaged_file_changes_nothing(installation: Installation, tmp_path: Path) -> None:
    file = write(tmp_path / "old.db", [reminder(message="Long " * 200) for _ in range(100)])
    content = bytearray(file.read_bytes())
    content[len(content) // 2 :] = b"\xff" * (len(content) - len(content) // 2)
    file.write_bytes(content)
    with pytest.raises(Invalid, match="damaged"):
        await installation.schedules.importer.import_file(OPERATOR, file)
    assert (await installation.schedules.queries.list(OPERATOR)).schedules == []


async def test_only_an_admin_takes_files_over(installation: Installation, tmp_path: Path) -> None:
    with pytest.raises(Denied, match="An import"):
        await installation.schedules.importer.import_file(
            agent(installation.ada), write(tmp_path / "old.db", [reminder()])
        )


async def test_a_count_that_was_kept_over_there_goes_on_here(installation: Installation, tmp_path: Path) -> None:
    hourly = {"schedule_type": "interval", "schedule_value": "1h", "agent_id": installation.ada}
    rows = [
        reminder(**hourly, next_run=soon(), max_repetitions=4, repetition_count=3),
        reminder(**hourly, next_run=soon(), repetition_count=7),
    ]
    done = await installation.schedules.importer.import_file(OPERATOR, write(tmp_path / "old.db", rows))
    last, endless = done.made
    assert done.warnings == []
    assert len((await installation.schedules.queries.preview(OPERATOR, last)).times) == 1
    assert [(await installation.schedules.queries.get(OPERATOR, one)).fired for one in done.made] == [3, 7]
    run = await installation.schedules.update(OPERATOR, endless, ScheduleChange(max_repetitions=8))
    assert (run.schedule.fired, run.schedule.what.max_repetitions) == (7, 8)


async def test_agents_that_the_host_does_not_know_are_named(installation: Installation, tmp_path: Path) -> None:
    rows = [reminder(agent_id=installation.ada), reminder(), reminder(message="Another")]
    done = await installation.schedules.importer.import_file(OPERATOR, write(tmp_path / "old.db", rows))
    assert len(done.made) == 3
    (warning,) = done.warnings
    assert warning.startswith("Agent 'agent-1', of 2 of these, is not known to the agent host")
