"""Requests each page by turns from empty installations, from ones with one thing of each kind, and from full ones."""

import sqlite3
import statistics
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
from tests.support.desk import frontdesk, open_desk

from bench.pages.filling import A_TENTH, MUCH, ONE_OF_EACH, Stock, fill

# The pages that an empty installation has.
LISTS = (
    "/",
    "/start",
    "/agents",
    "/tools",
    "/tools?q=thing+text",
    "/tools/all",
    "/tools/servers",
    "/tools/plan",
    "/tools/add",
    "/tools/use",
    "/tools/quality",
    "/schedule",
    "/schedule?show=runs",
    "/schedule/new",
    "/people",
    "/turns",
    "/access",
    "/access/denied",
)
# The pages that need one thing of a kind.
ONES = (
    "/agents/agent-00000000",
    "/agents/agent-00000000/memory",
    "/tools/tool/server-0%3A%3Atool_0",
    "/tools/server/server-0",
    "/schedule/1",
    "/turns/turn-0",
    "/people/ann",
    "/people/ann?tab=memories",
    "/people/ann?tab=timeline",
    "/people/ann?tab=time",
    "/people/ann?tab=everything",
)
# The day of a person whose records are the same in every installation that has any.
KEPT = (("tasks", "add", "Water the plants", "--user", "ann"), ("memory", "add", "Ann likes tea", "--user", "ann"))
PAGES = (*LISTS, *ONES)
WARM_UP = 3
# All new embeddings are read once, in the background.
READ_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Effort:
    """How many times each page is requested, and how much is in the full installation."""

    rounds: int
    much: Stock


FULL = Effort(40, MUCH)
QUICK = Effort(10, A_TENTH)


@dataclass(frozen=True, slots=True)
class PagesMeasured:
    """Seconds of each request for a page: from the empty or small installation, and from the full one."""

    little: Mapping[str, Sequence[float]]
    full: Mapping[str, Sequence[float]]
    much: Stock

    def ratio(self, page: str) -> float:
        return statistics.median(self.full[page]) / statistics.median(self.little[page])


def measure_pages(effort: Effort, folder: Path) -> PagesMeasured:
    with ExitStack() as stack:
        empty = stack.enter_context(_installation(folder / "pages-empty", None))
        sparse = stack.enter_context(_installation(folder / "pages-sparse", ONE_OF_EACH))
        full = stack.enter_context(_installation(folder / "pages-full", effort.much))
        little, much = ({page: list[float]() for page in PAGES} for _ in range(2))
        for number in range(WARM_UP + effort.rounds):
            for page in PAGES:
                for taken, client in ((little, empty if page in LISTS else sparse), (much, full)):
                    seconds = _seconds(client, page)
                    if number >= WARM_UP:
                        taken[page].append(seconds)
        return PagesMeasured(little, much, effort.much)


def _seconds(client: httpx2.Client, page: str) -> float:
    began = time.perf_counter()
    answer = client.get(page)
    seconds = time.perf_counter() - began
    if answer.status_code != 200:
        raise RuntimeError(f"{page} answers {answer.status_code} at {client.base_url}")
    return seconds


@contextmanager
def _installation(data: Path, stock: Stock | None) -> Generator[httpx2.Client]:
    for words in (("agents", "list"),) if stock is None else KEPT:
        done = frontdesk(*words, data=data)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
    if stock is not None:
        fill(data / "frontdesk.db", stock)
    with open_desk(data) as desk, httpx2.Client(base_url=desk.url, timeout=60) as client:
        if stock is not None:
            _await_vectors(data / "frontdesk.db", stock.tools)
        yield client


def _await_vectors(database: Path, count: int) -> None:
    """Wait until every tool can be found by its meaning: this measures a running installation, not its start."""
    with closing(sqlite3.connect(database, timeout=60)) as connection:
        for _ in range(READ_SECONDS):
            [(read,)] = connection.execute("SELECT count(*) FROM tool_vectors")
            if read >= count:
                return
            time.sleep(1)
    raise RuntimeError(f"{count} tools were not read in {READ_SECONDS} s")
