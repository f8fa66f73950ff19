"""Tests error messages and their readers, background work after errors, and the contents of logs."""

import ast
import io
import logging
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import anyio
import pytest
import structlog
from anyio.abc import TaskGroup
from structlog.testing import capture_logs

from frontdesk.background import BackgroundJob, background_group, retry_delays
from frontdesk.errors import Invalid, NotFound, Unavailable, Unstorable
from frontdesk.interfaces import logs
from frontdesk.llm.tools import Tool, ToolInput, ToolOutcome, run_tool, typed_tool
from tests.conftest import settings_with
from tests.support.desk import ROOT

# Error messages, and who may read them


PRIVATE = "The database postgresql://ada:***@db.internal/desk does not answer"
PUBLIC = "The database does not answer; try again shortly"


def away() -> Unavailable:
    return Unavailable(PRIVATE, public=PUBLIC)


def test_a_hint_is_for_people_and_the_words_of_a_contract_stay_as_they_are() -> None:
    error = Invalid("Invalid cron expression: 61 * * * *", "minutes end at 59")
    assert str(error) == "Invalid cron expression: 61 * * * *"
    assert error.public_message == error.full_message == "Invalid cron expression: 61 * * * * (minutes end at 59)"


def test_only_the_operator_reads_where_the_parts_are() -> None:
    assert (away().public_message, away().full_message) == (PUBLIC, PRIVATE)
    assert Unavailable("Letta does not answer").public_message == NotFound("Letta does not answer").public_message


def test_what_is_redacted_is_said_to_nobody() -> None:
    error = Unavailable("s3cret at home", public="s3cret")
    error.redact(lambda text: text.replace("s3cret", "***"))
    assert (str(error), error.full_message, error.public_message) == ("*** at home", "*** at home", "***")


async def test_a_model_is_told_what_a_stranger_may_read() -> None:
    async def typed(_given: ToolInput) -> ToolOutcome:
        raise away()

    async def untyped(_given: Mapping[str, Any]) -> ToolOutcome:
        raise away()

    assert await run_tool(typed_tool("ours", "", ToolInput, typed), {}) == ToolOutcome(PUBLIC, ok=False)
    assert await run_tool(Tool("any", "", {}, untyped), {}) == ToolOutcome(f"Error: {PUBLIC}", ok=False)


# Background work: an error ends nothing else, and is reported


CHORE = BackgroundJob(structlog.get_logger("test"), "it_waits", "it_failed")
PATIENCE = 10


class Work:
    """Raises these one by one, and then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.done = 0
        self.well = anyio.Event()

    async def __call__(self) -> None:
        self.done += 1
        if self._errors:
            raise self._errors.pop(0)
        self.well.set()


async def test_what_is_known_to_happen_is_a_warning_and_what_is_not_comes_with_its_traceback() -> None:
    work = Work(Unavailable("the database is away"), Unstorable("a value"), ZeroDivisionError())
    with capture_logs() as logged:
        assert [await CHORE.attempt(work, part="one") for _ in range(4)] == [False, False, False, True]
    assert [(line["event"], line["log_level"], line["part"]) for line in logged] == [
        ("it_waits", "warning", "one"),
        ("it_waits", "warning", "one"),
        ("it_failed", "error", "one"),
    ]
    assert logged[0]["error"] == "the database is away"
    assert logged[2]["exc_info"]


async def test_a_stop_that_looks_like_trouble_is_a_stop() -> None:
    async def cut_off() -> None:
        raise Unavailable("the connection was closed")

    with capture_logs() as logged, anyio.CancelScope() as scope:
        scope.cancel()
        await CHORE.attempt(cut_off)
    assert (scope.cancelled_caught, logged) == (True, [])


@pytest.mark.parametrize("at_once", [True, False])
async def test_work_is_done_again_whatever_goes_wrong_with_it(*, at_once: bool) -> None:
    work = Work(ZeroDivisionError(), Unavailable("away"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: CHORE.run_every(0.001, work, at_once=at_once))
        with anyio.fail_after(PATIENCE):
            await work.well.wait()
        tasks.cancel_scope.cancel()
    assert work.done >= 3


async def test_what_is_done_rarely_is_done_first_at_once() -> None:
    rare, later = Work(), Work()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: CHORE.run_every(3600, rare, at_once=True))
        tasks.start_soon(lambda: CHORE.run_every(3600, later))
        with anyio.fail_after(PATIENCE):
            await rare.well.wait()
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert (rare.done, later.done) == (1, 0)


async def test_what_waits_is_written_when_it_ends() -> None:
    flush = Work()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(CHORE.flush_every, 3600, flush, PATIENCE)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert flush.done == 1


async def test_a_group_hands_on_an_error_as_it_is_and_ends_what_runs_in_it() -> None:
    ended = anyio.Event()

    async def runs() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async def fails(tasks: TaskGroup) -> None:
        tasks.start_soon(runs)
        await anyio.wait_all_tasks_blocked()
        raise Unavailable("away")

    with pytest.raises(Unavailable, match="away"):
        async with background_group() as tasks:
            await fails(tasks)
    assert ended.is_set()


def test_the_last_pause_is_kept_for_ever() -> None:
    assert list(islice(retry_delays(0.1, 0.5), 4)) == [0.1, 0.5, 0.5, 0.5]


# Logs show where something failed, never the content; and every event is explained


SECRET = "S3CRET"


@pytest.fixture(params=["text", "json"])
def sink(request: pytest.FixtureRequest) -> io.StringIO:
    found = io.StringIO()
    logs.configure_logs(settings_with(FRONTDESK_LOG_FORMAT=request.param))
    structlog.configure(logger_factory=structlog.WriteLoggerFactory(found), cache_logger_on_first_use=False)
    return found


def fail() -> None:
    raise ValueError(f"the caller said {SECRET}")


def test_an_exception_shows_its_place_but_not_its_message(sink: io.StringIO) -> None:
    try:
        fail()
    except ValueError:
        structlog.get_logger("test").exception("it_failed", request_id="r-1")
    written = sink.getvalue()
    assert "it_failed" in written
    assert "ValueError" in written
    assert "test_errors.py" in written
    assert "r-1" in written
    assert SECRET not in written


def test_a_librarys_record_is_passed_on_without_its_arguments(sink: io.StringIO) -> None:
    try:
        fail()
    except ValueError:
        logging.getLogger("mcp.server").exception("body was %s", SECRET)
    logging.getLogger("mcp.server").warning(f"Invalid Host header: {SECRET}")  # noqa: G004 - as the library does it
    written = sink.getvalue()
    assert "mcp.server" in written
    assert "body was %s" in written
    assert SECRET not in written


@pytest.mark.parametrize("form", ["text", "json"])
def test_every_line_says_which_part_wrote_it(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure_logs(settings_with(FRONTDESK_LOG_FORMAT=form))
    structlog.get_logger("frontdesk.schedules").warning("worker_waits")
    logging.getLogger("mcp.server").warning("body was %s", SECRET)
    ours, theirs = capsys.readouterr().err.splitlines()
    assert "frontdesk.schedules" in ours
    assert ("mcp.server" in theirs, SECRET in theirs) == (True, False)


def test_what_is_below_the_level_is_not_written(sink: io.StringIO) -> None:
    structlog.get_logger("test").debug("quiet")
    logging.getLogger("uvicorn").info("quiet too")
    assert sink.getvalue() == ""


def log_in_every_way(times: int = 1) -> None:
    log = structlog.get_logger("test")
    for number in range(times):
        for way in (log.info, log.warning, log.error, log.critical, log.exception):
            way("something_happened", number=number)
        logging.getLogger("uvicorn").warning("number %s", number)


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_log_on_a_full_disk_ends_nobody(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    full = Path("/dev/full").open("w")  # noqa: SIM115 - what lies in it cannot be written when it is closed either
    monkeypatch.setattr(sys, "stderr", full)
    logs.configure_logs(settings_with(FRONTDESK_LOG_FORMAT=form))
    # More than the buffer of a file holds back.
    log_in_every_way(times=100)
    with suppress(OSError):
        full.close()
    log_in_every_way()


def test_every_event_is_explained() -> None:
    """By `log.…("event")`, `write("event")` if the level varies, or as one of the two of a `BackgroundJob`."""
    page = ROOT.joinpath("docs/reference/logs.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    explained = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    written = {name for path in ROOT.joinpath("src/frontdesk").rglob("*.py") for name in events(path)}
    assert (written - explained, explained - written) == (set(), set())


def events(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and re.search(r"(\blog\.\w+|^write|^BackgroundJob)$", ast.unparse(node.func)):
            told = node.args[1:] if ast.unparse(node.func) == "BackgroundJob" else node.args[:1]
            constants = [part for arg in told for part in ast.walk(arg) if isinstance(part, ast.Constant)]
            yield from (part.value for part in constants if isinstance(part.value, str))
