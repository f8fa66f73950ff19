"""Tests what an editor shows of scheduled prompts, and a prompt that runs while the session is open."""

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from frontdesk.agents.host import NewAgent
from frontdesk.app import App, open_app, running
from frontdesk.errors import Unavailable
from frontdesk.identity.model import Caller
from frontdesk.interfaces.acp.watchers import AgentWatch, ScheduledResult, ScheduleWatcher
from frontdesk.schedules.model import RunRecord, RunStatus
from frontdesk.schedules.requests import ListRuns, NewSchedule
from tests.conftest import settings_with
from tests.interfaces.acp.conftest import folder, introduced, said_in
from tests.requirements import shows
from tests.support.acp.schema import script as editor_script
from tests.support.acp.schema import update_in
from tests.support.chat import script
from tests.support.postgres import Ready
from tests.support.scheduling import OPERATOR
from tests.support.waiting import POLL_SECONDS, WAIT_SECONDS, until

pytestmark = shows("ACP-NEWS")


# What an installation that delivers prompts sends to an editor about them


ANN = Caller("test", user_id="ann", local=True, any_agent=True)
BEN = replace(ANN, user_id="ben")
HELLO = script({"text": "Hello | **there**"})


@dataclass(slots=True)
class Editor:
    """A person with open agents, and the messages to their editors."""

    caller: Caller
    agents: Collection[str] = ()
    told: list[tuple[str, ScheduledResult]] = field(default_factory=list[tuple[str, ScheduledResult]])
    looked: int = 0
    rounds: int = 0
    troubles: list[Exception] = field(default_factory=list[Exception])
    deaf: list[Exception] = field(default_factory=list[Exception])

    def open_agents(self) -> Collection[str]:
        self.rounds += 1
        return self.agents

    async def who(self) -> Caller:
        self.looked += 1
        if self.troubles:
            raise self.troubles.pop()
        return self.caller

    async def tell(self, agent_id: str, tidings: ScheduledResult) -> None:
        if self.deaf:
            raise self.deaf.pop()
        self.told.append((agent_id, tidings))

    async def some_rounds(self) -> None:
        """Wait until the agent has looked twice for runs that have ended by now."""
        wanted = self.rounds + 3
        await until(lambda: self.rounds >= wanted)


@pytest.fixture
async def installation(tmp_path: Path, ready: Ready) -> AsyncGenerator[App]:
    data = ready.in_folder(tmp_path / "data")
    async with open_app(settings_with(FRONTDESK_DATA=data, FRONTDESK_EMBEDDINGS="off")) as app, running(app):
        yield app


@pytest.fixture
async def agent(installation: App) -> str:
    return (await installation.host.create(NewAgent("Ada"))).id


@asynccontextmanager
async def watched(installation: App, *editors: Editor) -> AsyncGenerator[None]:
    """The editors receive news, and their agents are watched already."""
    async with anyio.create_task_group() as tasks:
        for editor in editors:
            tasks.start_soon(
                ScheduleWatcher(installation, editor.who, POLL_SECONDS).run, editor.open_agents, editor.tell
            )
        for editor in editors:
            await editor.some_rounds()
        yield
        tasks.cancel_scope.cancel()


async def delivered(installation: App, caller: Caller, asked: NewSchedule) -> RunRecord:
    """Make a schedule, run it once now, and wait for its end."""
    added = await installation.schedules.add(caller, replace(asked, when="every year on january 1 at 9"))
    return await over(installation, await installation.schedules.run_now(caller, added.schedule.id))


async def over(installation: App, run_id: str) -> RunRecord:
    with anyio.fail_after(WAIT_SECONDS):
        while True:
            runs = (await installation.schedules.queries.history(OPERATOR, ListRuns())).runs
            past = next((one for one in runs if one.id == run_id and one.ended_us is not None), None)
            if past is not None:
                return past
            await anyio.sleep(POLL_SECONDS)


def runs_of(editor: Editor) -> list[str]:
    return [tidings.run_id for _, tidings in editor.told]


async def test_an_answer_is_told_once_with_its_prompt(installation: App, agent: str) -> None:
    ann = Editor(ANN, [agent])
    async with watched(installation, ann):
        first = await delivered(installation, ANN, NewSchedule(HELLO, agent))
        await until(lambda: len(ann.told) == 1)
        second = await delivered(installation, ANN, NewSchedule("And again", agent))
        await until(lambda: len(ann.told) >= 2)
        await ann.some_rounds()
    assert runs_of(ann) == [first.id, second.id]
    assert {agent_id for agent_id, _ in ann.told} == {agent}
    tidings = ann.told[0][1]
    assert (tidings.prompt, tidings.answer, tidings.standing) == (HELLO, "Hello | **there**", RunStatus.DELIVERED)
    assert tidings.conversation_id is not None
    assert tidings.text.startswith(f"**Scheduled prompt {first.schedule_id}**: @@\\[{{")
    assert tidings.text.endswith("\n\nHello | **there**")


async def test_what_was_over_before_is_not_told(installation: App, agent: str) -> None:
    await delivered(installation, ANN, NewSchedule(HELLO, agent))
    ann = Editor(ANN, [agent])
    async with watched(installation, ann):
        later = await delivered(installation, ANN, NewSchedule(HELLO, agent))
        await until(lambda: bool(ann.told))
        await ann.some_rounds()
    assert runs_of(ann) == [later.id]


async def test_what_could_not_be_delivered_is_told_with_the_reason(installation: App) -> None:
    operator = Editor(OPERATOR, ["agent-gone"])
    async with watched(installation, operator):
        dead = await delivered(installation, OPERATOR, NewSchedule("Wake up", "agent-gone", skip_validation=True))
        await until(lambda: bool(operator.told))
    tidings = operator.told[0][1]
    assert (tidings.run_id, tidings.standing) == (dead.id, RunStatus.DEAD)
    assert tidings.reason
    assert "Wake up\n\nIt was not delivered, and is not tried again: " in tidings.text
    assert "agent-gone" in tidings.text


async def test_nobody_hears_of_another_persons_prompts(installation: App, agent: str) -> None:
    ann, ben, operator = Editor(ANN, [agent]), Editor(BEN, [agent]), Editor(OPERATOR, [agent])
    async with watched(installation, ann, ben, operator):
        past = await delivered(installation, ANN, NewSchedule(HELLO, agent))
        await until(lambda: bool(ann.told))
        await ben.some_rounds()
        await operator.some_rounds()
    assert runs_of(ann) == [past.id]
    assert not ben.told
    assert not operator.told


async def test_an_agent_that_is_not_open_is_not_watched(installation: App, agent: str) -> None:
    ann = Editor(ANN)
    async with watched(installation, ann):
        await delivered(installation, ANN, NewSchedule(HELLO, agent))
        await ann.some_rounds()
        assert ann.looked == 0
        ann.agents = [agent]
        await ann.some_rounds()
        later = await delivered(installation, ANN, NewSchedule(HELLO, agent))
        await until(lambda: bool(ann.told))
    assert runs_of(ann) == [later.id]


async def test_what_ends_while_nobody_can_look_is_told_afterwards(installation: App, agent: str) -> None:
    ann = Editor(ANN, [agent])
    with capture_logs() as logs:
        async with watched(installation, ann):
            ann.troubles = [Unavailable("The database does not answer"), Unavailable("The database does not answer")]
            past = await delivered(installation, ANN, NewSchedule(HELLO, agent))
            await until(lambda: bool(ann.told))
            await ann.some_rounds()
    assert runs_of(ann) == [past.id]
    waits = [one for one in logs if one["event"] == "acp_news_wait"]
    assert [(one["agent_id"], one["error"]) for one in waits] == [(agent, "The database does not answer")] * 2


async def test_an_editor_that_cannot_be_told_hears_the_next_news(installation: App, agent: str) -> None:
    ann = Editor(ANN, [agent], deaf=[RuntimeError("gone")])
    with capture_logs() as logs:
        async with watched(installation, ann):
            await delivered(installation, ANN, NewSchedule(HELLO, agent))
            await until(lambda: not ann.deaf)
            later = await delivered(installation, ANN, NewSchedule(HELLO, agent))
            await until(lambda: bool(ann.told))
            await ann.some_rounds()
    assert runs_of(ann) == [later.id]
    assert [one["event"] for one in logs if one["event"].startswith("acp_")] == ["acp_news_failed"]


def ended(number: int, standing: RunStatus, ended_us: int | None) -> RunRecord:
    return RunRecord(f"run-{number}", 1, "agent-ada", None, number, 1, standing, 1, 0, ended_us)


RUNS = st.lists(
    st.builds(ended, st.integers(0, 20), st.sampled_from(RunStatus), st.none() | st.integers(0, 100)),
    unique_by=lambda run: run.id,
)


@given(st.lists(RUNS), st.integers(0, 100))
def test_each_end_of_a_run_is_fresh_once_while_it_is_listed(pages: Sequence[Sequence[RunRecord]], began: int) -> None:
    watch = AgentWatch(began)
    listed: set[tuple[str, int | None]] = set()
    for page in pages:
        fresh = watch.new_results(page)
        watch.told.update((run.id, run.ended_us or 0) for run in fresh)
        due = [run for run in page if run.standing in (RunStatus.DELIVERED, RunStatus.DEAD)]
        due = [run for run in due if run.ended_us is not None and run.ended_us >= began]
        assert {run.id for run in fresh} == {run.id for run in due if (run.id, run.ended_us) not in listed}
        assert [run.ended_us for run in fresh] == sorted(run.ended_us or 0 for run in fresh)
        listed = {(run.id, run.ended_us) for run in due}


# A prompt that was scheduled in a session appears there by itself, while the editor has it open


async def test_a_scheduled_prompt_is_answered_in_the_open_session(tmp_path: Path, ready: Ready) -> None:
    data, work = ready.in_folder(tmp_path / "data"), folder(tmp_path)
    async with introduced(data) as desk:
        client = desk.client
        session = await client.open_session(work)
        elsewhere = await client.open_session(folder(tmp_path, "elsewhere"))
        since = len(client.frames)
        # Escaped, so that the prompt cannot pass for its answer.
        wanted = editor_script({"text": "The kettle boils"}).replace("kettle", r"\u006bettle")
        assert await client.prompt(session, f"/schedule in 1 second: {wanted}") == {"stopReason": "end_turn"}
        assert "Scheduled with number" in client.said(since=since)
        told = await client.until(lambda frame: "The kettle boils" in str(update_in(frame)), since=since)
        assert told.json["params"]["sessionId"] == session
        assert update_in(told)["sessionUpdate"] == "agent_message_chunk"
        assert "Scheduled prompt" in "".join(said_in(client, session, since=since).values())
        assert not [one for one in said_in(client, elsewhere, since=since).values() if "kettle" in one]
        # It is part of the conversation, and is sent once.
        await client.prompt(session, editor_script({"text": "and on"}))
        since = len(client.frames)
        await client.request("session/load", {"sessionId": session, "cwd": str(work), "mcpServers": []})
        assert list(said_in(client, session, since=since).values()) == ["The kettle boils", "and on"]
        since = len(client.frames)
        await client.prompt(session, "/schedule")
        assert "kettle" not in client.said(since=since)
