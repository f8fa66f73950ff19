"""Schedules made, changed and looked at through the service, on both databases."""

from dataclasses import replace

import anyio
import pytest

from frontdesk.errors import Conflict, Denied, FrontdeskError, Invalid, MissingAgentId, MissingScope, NotFound
from frontdesk.identity.model import Caller
from frontdesk.schedules.create import ScheduleLimits
from frontdesk.schedules.model import SECOND, RunStatus, ScheduleDefinition, ScheduleState, Trigger, TriggerKind, now_us
from frontdesk.schedules.requests import ListRuns, ListSchedules, NewSchedule, RuleDescription, ScheduleChange
from tests.requirements import shows
from tests.stores.schedule_service.conftest import HOUR_US, House, agent, begun, person, program
from tests.support.scheduling import OPERATOR

pytestmark = pytest.mark.anyio


async def test_a_schedule_is_made_and_its_rule_said_back(house: House) -> None:
    added = await house.schedules.add(agent(house.ada), NewSchedule("Stand up", when="every weekday at 9 Berlin time"))
    assert added.schedule.what.agent_id == house.ada
    assert added.schedule.state is ScheduleState.ACTIVE
    assert added.rule.facts["rule"] == "cron 0 9 * * MON-FRI"
    assert added.rule.facts["zone"] == "Europe/Berlin"
    assert "Europe/Berlin" in added.rule.sentence
    assert await house.schedules.queries.get(agent(house.ada), str(added.schedule.id)) == added.schedule


@shows("SCHEDULE-ERRORS")
async def test_an_agent_that_the_host_does_not_know_is_refused_unless_told_not_to_look(house: House) -> None:
    with pytest.raises(Invalid, match="Agent validation failed: agent 'agent-x' is not known to the agent host"):
        await house.schedules.add(OPERATOR, NewSchedule("Hi", "agent-x", every="5m"))
    added = await house.schedules.add(OPERATOR, NewSchedule("Hi", "agent-x", every="5m", skip_validation=True))
    assert added.schedule.what.agent_id == "agent-x"


@shows("SCHEDULE-ERRORS")
async def test_without_any_agent_there_is_nobody_to_schedule_for(house: House) -> None:
    for caller in (OPERATOR, person("ann"), Caller("1", verified=True)):
        with pytest.raises(MissingAgentId):
            await house.schedules.add(caller, NewSchedule("Hi", every="5m"))
    with pytest.raises(MissingAgentId):
        await house.schedules.add(OPERATOR, NewSchedule("Hi", "null", every="5m"))


@shows("SCHEDULE-OWN")
async def test_nobody_schedules_for_an_agent_that_is_not_their_own(house: House) -> None:
    asked = NewSchedule("Hi", house.bob, every="5m")
    for caller in (agent(house.ada), agent(house.ada, "ann"), person("ann")):
        with pytest.raises(Denied):
            await house.schedules.add(caller, asked)
    for caller in (OPERATOR, agent(house.bob), Caller("1", verified=True, any_agent=True)):
        await house.schedules.add(caller, asked)
    assert len((await house.schedules.queries.list(OPERATOR)).schedules) == 3


async def test_a_credential_for_other_things_plans_and_reads_nothing(house: House) -> None:
    limited = replace(agent(house.ada), scopes=frozenset({"tools:call"}))
    with pytest.raises(MissingScope, match="schedules:write"):
        await house.schedules.add(limited, NewSchedule("Hi", every="5m"))
    with pytest.raises(MissingScope, match="schedules:read"):
        await house.schedules.queries.list(limited)


@shows("SCHEDULE-LIMITS")
async def test_an_agent_has_as_many_schedules_as_it_may_and_no_more_however_many_ask_at_once(house: House) -> None:
    schedules = replace(house.schedules, limits=ScheduleLimits(count=3))
    outcomes: list[FrontdeskError | None] = []

    async def one() -> None:
        try:
            await schedules.add(agent(house.ada), NewSchedule("Hi", every="5m"))
        except Conflict as error:
            outcomes.append(error)
        else:
            outcomes.append(None)

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(one)
    assert outcomes.count(None) == 3
    await schedules.add(agent(house.bob), NewSchedule("Hi", every="5m"))
    first, *_ = (await schedules.queries.list(agent(house.ada))).schedules
    await schedules.cancel(agent(house.ada), first.id)
    await schedules.add(agent(house.ada), NewSchedule("Hi", every="5m"))


@shows("SCHEDULE-LIMITS")
async def test_a_run_of_a_repeating_schedule_makes_no_other_that_repeats(house: House) -> None:
    mine = await house.put(house.ada, due_us=now_us() - SECOND)
    (run,) = await begun(house)
    with pytest.raises(Conflict, match=f"scheduled run of schedule {mine.id}, which repeats by itself"):
        await house.schedules.add(agent(house.ada), NewSchedule("Each Monday…", cron="0 9 * * MON"))
    once = [NewSchedule("Once", time=f"in {number} hours") for number in (1, 2, 3)]
    planned = [(await house.schedules.add(agent(house.ada), asked)).schedule for asked in once]
    assert {one.what.made_by for one in planned} == {run.id}
    with pytest.raises(Conflict, match="has made 3 schedules"):
        await house.schedules.add(agent(house.ada), NewSchedule("Once", time="in 9 hours"))
    with pytest.raises(Conflict, match="repeats by itself"):
        await house.schedules.update(agent(house.ada), planned[0].id, ScheduleChange(every="1h"))
    with pytest.raises(Conflict, match="cannot start another"):
        await house.schedules.run_now(agent(house.ada), mine.id)


async def test_the_guard_leaves_people_and_other_agents_alone(house: House) -> None:
    await house.put(house.ada, due_us=now_us() - SECOND)
    await begun(house)
    rule = NewSchedule("Each Monday…", house.ada, cron="0 9 * * MON")
    made = await house.schedules.add(OPERATOR, rule)
    assert made.schedule.what.made_by is None
    await house.schedules.add(agent(house.bob), replace(rule, agent_id=house.bob))


async def test_a_persons_prompts_are_said_in_a_conversation_of_their_own(house: House) -> None:
    ann, ben = agent(house.ada, "ann"), agent(house.ada, "ben")
    hers = (await house.schedules.add(ann, NewSchedule("Mine", every="5m"))).schedule.what.conversation_id
    his = (await house.schedules.add(ben, NewSchedule("His", every="5m"))).schedule.what.conversation_id
    assert hers is not None
    assert hers != his
    for conversation in (hers, "conv-nowhere"):
        with pytest.raises(NotFound, match="has no conversation"):
            await house.schedules.add(ben, NewSchedule("Tell me", every="5m", conversation_id=conversation))
    with pytest.raises(Invalid, match="Agent validation failed"):
        await house.schedules.add(replace(ann, agent_id="agent-x"), NewSchedule("Hi", every="5m", skip_validation=True))


async def test_a_person_may_have_prompts_in_a_session_of_theirs(house: House) -> None:
    ann = agent(house.ada, "ann")
    session = (await house.app.chat.open(ann, house.ada)).session
    added = await house.schedules.add(ann, NewSchedule("Hi", every="5m", conversation_id=session.conversation_id))
    assert added.schedule.what.conversation_id == session.conversation_id
    with pytest.raises(NotFound):
        await house.schedules.update(
            agent(house.bob, "ann"),
            (await house.schedules.add(agent(house.bob, "ann"), NewSchedule("Hi", every="5m"))).schedule.id,
            ScheduleChange(conversation_id=session.conversation_id),
        )


async def test_an_agents_prompts_stay_in_conversations_of_that_agent(house: House) -> None:
    theirs = await house.app.host.start_conversation(house.bob)
    with pytest.raises(NotFound):
        await house.schedules.add(agent(house.ada), NewSchedule("Hi", every="5m", conversation_id=theirs.id))
    own = await house.app.host.start_conversation(house.ada)
    added = await house.schedules.add(agent(house.ada), NewSchedule("Hi", every="5m", conversation_id=own.id))
    assert added.schedule.what.conversation_id == own.id
    plain = await house.schedules.add(agent(house.ada), NewSchedule("Hi", every="5m"))
    assert plain.schedule.what.conversation_id is None


async def test_a_list_leaves_out_what_is_over_and_goes_on_where_it_ended(house: House) -> None:
    ids = [(await house.put(house.ada)).id for _ in range(5)]
    await house.schedules.cancel(agent(house.ada), ids[0])
    await house.schedules.pause(agent(house.ada), ids[1])
    page = await house.schedules.queries.list(agent(house.ada), ListSchedules(limit=3))
    assert ([one.id for one in page.schedules], page.next) == (ids[1:4], ids[3])
    rest = await house.schedules.queries.list(agent(house.ada), ListSchedules(limit=3, after_id=ids[3]))
    assert ([one.id for one in rest.schedules], rest.next) == (ids[4:], None)
    everything = await house.schedules.queries.list(agent(house.ada), ListSchedules(include_cancelled=True))
    assert [one.id for one in everything.schedules] == ids
    paused = await house.schedules.queries.list(agent(house.ada), ListSchedules(state=ScheduleState.PAUSED))
    assert [one.id for one in paused.schedules] == ids[1:2]


@shows("SCHEDULE-ERRORS")
async def test_what_is_cancelled_cannot_be_cancelled_again(house: House) -> None:
    made = await house.put(house.ada)
    cancelled = await house.schedules.cancel(agent(house.ada), made.id)
    assert cancelled.state is ScheduleState.CANCELLED
    for gone in (made.id, 424242):
        with pytest.raises(NotFound) as refused:
            await house.schedules.cancel(agent(house.ada), gone)
        assert str(refused.value) == f"Schedule {gone} not found or already cancelled"
    with pytest.raises(Invalid, match="Schedule ID must be a number"):
        await house.schedules.cancel(agent(house.ada), "first")


async def test_a_schedule_is_paused_and_goes_on(house: House) -> None:
    made = await house.put(house.ada, due_us=now_us() - 90 * 60 * SECOND)
    assert (await house.schedules.pause(agent(house.ada), made.id)).state is ScheduleState.PAUSED
    with pytest.raises(Conflict, match="is paused; only an active one"):
        await house.schedules.pause(agent(house.ada), made.id)
    resumed = (await house.schedules.resume(agent(house.ada), made.id)).schedule
    assert resumed.state is ScheduleState.ACTIVE
    assert resumed.intended_us is not None
    assert resumed.intended_us > now_us()
    with pytest.raises(Conflict, match="is active; only a paused one"):
        await house.schedules.resume(agent(house.ada), made.id)


async def test_a_change_in_place_keeps_the_number_and_counts_from_now(house: House) -> None:
    made = await house.put(house.ada)
    told = await house.schedules.update(agent(house.ada), made.id, ScheduleChange(prompt="Pong", every="2h"))
    assert (told.schedule.id, told.schedule.what.prompt) == (made.id, "Pong")
    assert told.rule.facts["rule"] == "every 2h"
    assert told.schedule.intended_us is not None
    assert told.schedule.intended_us > now_us() + HOUR_US
    same = await house.schedules.update(agent(house.ada), made.id, ScheduleChange(prompt="Ping"))
    assert same.schedule.intended_us == told.schedule.intended_us
    await house.schedules.cancel(agent(house.ada), made.id)
    with pytest.raises(Conflict, match="cannot be changed any more"):
        await house.schedules.update(agent(house.ada), made.id, ScheduleChange(prompt="Too late"))


async def test_a_higher_maximum_goes_on_after_what_was_to_be_the_last_run(house: House) -> None:
    asked = NewSchedule("Hi", every="1h", max_repetitions=1)
    made = (await house.schedules.add(agent(house.ada), asked)).schedule
    due = replace(made.what, trigger=replace(made.what.trigger, start_us=now_us() - SECOND))
    await house.schedules.store.update(made.id, due, now_us() - SECOND, now_us())
    await begun(house)
    assert (await house.schedules.queries.get(OPERATOR, made.id)).intended_us is None
    more = (await house.schedules.update(OPERATOR, made.id, ScheduleChange(max_repetitions=2))).schedule
    assert more.intended_us is not None
    assert more.intended_us > now_us()


async def test_a_preview_tells_as_many_times_as_are_left(house: House) -> None:
    asked = NewSchedule("Hi", every="1h", max_repetitions=3)
    made = (await house.schedules.add(agent(house.ada), asked)).schedule
    shown = await house.schedules.queries.preview(agent(house.ada), made.id, 10)
    assert list(shown.times) == [made.intended_us + number * HOUR_US for number in range(3) if made.intended_us]
    assert len((await house.schedules.queries.preview_rule(person("ann"), asked, 2)).times) == 2
    await house.schedules.cancel(agent(house.ada), made.id)
    assert list((await house.schedules.queries.preview(agent(house.ada), made.id)).times) == []


async def test_webhooks_need_a_secret_to_be_signed_with(house: House) -> None:
    with pytest.raises(Invalid, match="FRONTDESK_WEBHOOK_SECRET"):
        await house.schedules.add(agent(house.ada), NewSchedule("Hi", every="5m", webhook="https://example.com/hook"))
    made = await house.put(house.ada)
    with pytest.raises(Invalid, match="FRONTDESK_WEBHOOK_SECRET"):
        await house.schedules.update(agent(house.ada), made.id, ScheduleChange(webhook="https://example.com/hook"))


async def test_a_run_on_demand_is_delivered_and_told_of(house: House) -> None:
    made = await house.put(house.ada)
    run = await house.schedules.run_now(agent(house.ada), made.id)
    (done,) = await house.schedules.executor.run_due(program(house.ada))
    assert (done.id, done.delivery_id, done.delivered, done.error) == (made.id, run, True, None)
    (past,) = (await house.schedules.queries.history(agent(house.ada), ListRuns(schedule_id=made.id))).runs
    assert (past.id, past.standing, past.manual) == (run, RunStatus.DELIVERED, True)
    assert past.answer is not None
    assert "offline stand-in" in past.answer


async def test_what_is_due_is_executed_once_and_told_in_full(house: House) -> None:
    asked = NewSchedule("Hi", every="1h", max_repetitions=2)
    made = (await house.schedules.add(agent(house.ada), asked)).schedule
    earlier = replace(made.what, trigger=replace(made.what.trigger, start_us=now_us() - SECOND))
    await house.schedules.store.update(made.id, earlier, now_us() - SECOND, now_us())
    (done,) = await house.schedules.executor.run_due(OPERATOR)
    assert (done.repetition_count, done.max_repetitions, done.completed) == (1, 2, False)
    assert done.next_us is not None
    assert done.next_us > now_us()
    assert list(await house.schedules.executor.run_due(OPERATOR)) == []


async def test_a_loop_is_bounded_and_tells_of_every_round(house: House) -> None:
    await house.put(house.ada, due_us=now_us() - SECOND)
    rounds: list[tuple[int, int]] = []

    async def told(number: int, ran: object) -> None:
        rounds.append((number, len(ran)))  # pyright: ignore[reportArgumentType] - a sequence

    with anyio.fail_after(30):
        assert await house.schedules.executor.loop(OPERATOR, 1, 1, told) == 1
    assert rounds == [(1, 1)]
    with pytest.raises(Invalid, match="Interval must be a number"):
        await house.schedules.executor.loop(OPERATOR, "often")


async def test_a_run_of_an_agent_that_is_not_there_is_a_dead_letter_that_can_be_tried_again(house: House) -> None:
    made = await house.put("agent-x", due_us=now_us() - SECOND)
    (done,) = await house.schedules.executor.run_due(OPERATOR)
    assert not done.delivered
    assert done.error
    (dead,) = (await house.schedules.queries.history(OPERATOR, ListRuns(standing=RunStatus.DEAD))).runs
    assert dead.schedule_id == made.id
    assert (await house.schedules.redrive(OPERATOR, dead.id)).standing is RunStatus.WAITING
    with pytest.raises(Conflict, match="only a dead one"):
        await house.schedules.redrive(OPERATOR, dead.id)


async def test_the_executor_tells_an_admin_of_everything_and_others_of_itself(house: House) -> None:
    await house.put("agent-x", due_us=now_us() - SECOND)
    told = await house.schedules.executor.state(OPERATOR)
    assert (told.running, told.due, told.dead) == (False, 1, 0)
    assert told.concurrency == house.app.settings.worker_concurrency
    narrow = await house.schedules.executor.state(agent(house.ada))
    assert (narrow.due, narrow.dead, narrow.next_us) == (None, None, None)


async def test_figures_are_measured_for_the_metrics(house: House) -> None:
    await house.put("agent-x", due_us=now_us() - SECOND)
    await house.schedules.executor.update_metrics()
    shown = house.app.journal.render_metrics().decode()
    assert "frontdesk_schedule_due 1.0" in shown


async def test_a_schedule_in_a_zone_that_is_not_known_here_is_shown_and_can_be_mended(house: House) -> None:
    await house.put(house.ada)
    odd = Trigger(TriggerKind.CRON, "0 9 * * *", "Moon/Base")
    at = now_us() + HOUR_US
    made = await house.schedules.store.add(ScheduleDefinition(house.ada, "Ping", odd), at, now_us())
    listed = (await house.schedules.queries.list(OPERATOR)).schedules
    told = [RuleDescription.of(one.what.trigger, one.intended_us) for one in listed]
    assert (told[1].facts["zone"], told[1].facts["next_local"]) == ("Moon/Base", None)
    assert told[1].sentence.endswith("in a zone that is not known here")
    with pytest.raises(Invalid, match="Unknown time zone: Moon/Base"):
        await house.schedules.queries.preview(OPERATOR, made.id)
    mended = await house.schedules.update(OPERATOR, made.id, ScheduleChange(zone="Europe/Berlin"))
    assert mended.schedule.what.trigger.zone == "Europe/Berlin"
    await house.schedules.cancel(OPERATOR, made.id)
