"""Measures what a turn through the built-in host costs over the same request made directly, and whether it leaks."""

import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import psutil

from bench.processes import KEPT_VARIABLES, ROOT
from frontdesk.agents.embedded.conversation_store import ConversationStore
from frontdesk.agents.embedded.own_tools import MemoryTools, conversation_search, update_plan
from frontdesk.agents.embedded.store import AgentStore
from frontdesk.agents.host import Agent, AgentHost, NewAgent, Prompt
from frontdesk.app import open_app
from frontdesk.db.engine import Database
from frontdesk.identity.model import Caller
from frontdesk.llm.events import TextChunk
from frontdesk.llm.tools import Tool
from frontdesk.settings import Settings

MODEL = "fake-1"
KEY = "bench"
ANSWER = "It is a truth universally acknowledged, that a turn must be in want of speed."
TEXT = f'@@[{{"text": "{ANSWER}"}}]@@'
# Short threads: only the request grows with a conversation, on both sides.
THREAD = 5
WARM_UP = 30
SETTLED = 0.2


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds to the first piece of text, and to the end."""

    first: float
    whole: float


@dataclass(frozen=True, slots=True)
class TurnsMeasured:
    """Turns and direct calls by turns, and the memory of the process during the run."""

    turns: list[Timing]
    direct: list[Timing]
    resident: list[int]
    watched: int

    def overhead_ms(self, part: str) -> float:
        """The median of a turn minus the median of a direct call."""
        ours, theirs = ([getattr(timing, part) for timing in timings] for timings in (self.turns, self.direct))
        return (statistics.median(ours) - statistics.median(theirs)) * 1000

    @property
    def growth(self) -> float:
        """Memory at the end relative to memory after the warm-up."""
        warm = self.resident[max(1, int(len(self.resident) * SETTLED))]
        return self.resident[-1] / warm


async def measure_turns(folder: Path, pairs: int, many: int) -> TurnsMeasured:
    """`pairs` of a turn and a direct call, then `many` turns during which memory is watched."""
    with model_server() as url:
        settings = Settings.model_validate(
            {
                "FRONTDESK_DATA": folder / "turns",
                "OPENAI_BASE_URL": f"{url}/v1",
                "OPENAI_API_KEY": KEY,
                "FRONTDESK_MODEL": f"openai:{MODEL}",
            }
        )
        async with open_app(settings) as app, direct_caller(url, own_tools(app.database)) as direct:
            agent = await app.host.create(NewAgent("Bench"))
            caller = Turner(app.host, agent)
            timings = await _pairs(caller.take, direct, WARM_UP + pairs)
            resident = await _watch(caller.take, many)
    ours, theirs = timings
    return TurnsMeasured(ours[WARM_UP:], theirs[WARM_UP:], resident, many)


def own_tools(database: Database) -> Sequence[Tool]:
    """The tools that every built-in agent has."""
    memory = MemoryTools(AgentStore(database), "agent")
    return (*memory.tools(), conversation_search(ConversationStore(database), "agent", None), update_plan())


@dataclass(slots=True)
class Turner:
    """Takes turns, a few in each conversation."""

    host: AgentHost
    agent: Agent
    taken: int = 0
    conversation: str | None = None

    async def take(self) -> Timing:
        if self.taken % THREAD == 0:
            self.conversation = (await self.host.start_conversation(self.agent.id)).id
        self.taken += 1
        prompt = Prompt(self.agent.id, Caller("bench"), TEXT, conversation_id=self.conversation)
        started, first = time.perf_counter(), 0.0
        async with aclosing(self.host.send(prompt)) as events:
            async for event in events:
                if not first and isinstance(event, TextChunk):
                    first = time.perf_counter()
        return Timing(first - started, time.perf_counter() - started)


@asynccontextmanager
async def direct_caller(url: str, tools_of_an_agent: Sequence[Tool]) -> AsyncGenerator[Callable[[], Awaitable[Timing]]]:
    """An agent's request in the middle of a conversation, sent through the provider's own client with the same size."""
    tools: list[Any] = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools_of_an_agent
    ]
    exchange = [{"role": "user", "content": TEXT}, {"role": "assistant", "content": ANSWER}]
    messages: list[Any] = [
        {"role": "system", "content": "word " * 150},
        *(exchange * (THREAD // 2)),
        {"role": "user", "content": TEXT},
    ]
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY) as client:

        async def call() -> Timing:
            started, first = time.perf_counter(), 0.0
            stream = await client.chat.completions.create(
                model=MODEL, messages=messages, tools=tools, stream=True, stream_options={"include_usage": True}
            )
            async for chunk in stream:
                if not first and chunk.choices and chunk.choices[0].delta.content:
                    first = time.perf_counter()
            return Timing(first - started, time.perf_counter() - started)

        yield call


async def _pairs(
    turn: Callable[[], Awaitable[Timing]], direct: Callable[[], Awaitable[Timing]], count: int
) -> tuple[list[Timing], list[Timing]]:
    ours: list[Timing] = []
    theirs: list[Timing] = []
    for _ in range(count):
        ours.append(await turn())
        theirs.append(await direct())
    return ours, theirs


async def _watch(turn: Callable[[], Awaitable[Timing]], many: int) -> list[int]:
    """Resident bytes after every hundredth of the turns."""
    process = psutil.Process()
    seen: list[int] = []
    step = max(1, many // 100)
    for number in range(many):
        await turn()
        if number % step == 0:
            gc.collect()
            seen.append(process.memory_info().rss)
    return seen


@contextmanager
def model_server() -> Generator[str]:
    """The scripted model in a process of its own; gives its address."""
    environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.models", "0"],
        env=environment | {"PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if process.stdout is None or not (line := process.stdout.readline().strip()):
            raise RuntimeError("the scripted model did not start")
        yield line.split()[-1]
    finally:
        process.terminate()
        process.wait(10)
