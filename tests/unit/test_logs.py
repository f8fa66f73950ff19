"""Logs show where something failed, never what was said; and every event is explained."""

import ast
import io
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import structlog

from frontdesk.interfaces import logs
from tests.conftest import settings_with
from tests.support.desk import ROOT

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
    assert "test_logs.py" in written
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
    # More than is held back for a file.
    log_in_every_way(times=100)
    with suppress(OSError):
        full.close()
    log_in_every_way()


def test_every_event_is_explained() -> None:
    """By `log.…("event")`, `say("event")`, or as one of the two of a `BackgroundJob`."""
    page = ROOT.joinpath("docs/reference/logs.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    explained = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    written = {name for path in ROOT.joinpath("src/frontdesk").rglob("*.py") for name in events(path)}
    assert (written - explained, explained - written) == (set(), set())


def events(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and re.search(r"(\blog\.\w+|^say|^BackgroundJob)$", ast.unparse(node.func)):
            told = node.args[1:] if ast.unparse(node.func) == "BackgroundJob" else node.args[:1]
            constants = [part for arg in told for part in ast.walk(arg) if isinstance(part, ast.Constant)]
            yield from (part.value for part in constants if isinstance(part.value, str))
