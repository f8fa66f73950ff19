"""Writes logs as events on standard error, without secrets and without request bodies."""

import logging
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import Any, TextIO

import structlog
from typing_extensions import override

from frontdesk.settings import Settings

MAX_FRAMES = 12
REPEAT_SECONDS = 1.0
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logs(settings: Settings) -> None:
    """Set up our own logs, and pass on the libraries' warnings in the same format."""
    level = LEVELS[settings.log_level]
    renderer = (
        structlog.processors.JSONRenderer()
        if settings.log_format == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            add_logger_name,
            replace_exception,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *names: LogWriter(sys.stderr, *names),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(handlers=[LibraryLogHandler()], level=max(level, logging.WARNING), force=True)


class LogWriter:
    """Writes lines and ignores errors: a full disk or a closed pipe must not end the process."""

    def __init__(self, file: TextIO, name: str = "frontdesk") -> None:
        self.name = name
        self._lines = structlog.WriteLogger(file)

    def msg(self, line: str) -> None:
        with suppress(OSError, ValueError):
            self._lines.msg(line)

    debug = info = warning = error = critical = msg


def add_logger_name(logger: object, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add the name of the logger, unless it is a library's."""
    if "logger" not in event and isinstance(logger, LogWriter):
        event["logger"] = logger.name
    return event


def replace_exception(_logger: object, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace an exception by its type and stack: messages of libraries' exceptions may quote a request."""
    if event.pop("exc_info", None):
        kind, _, trace = sys.exc_info()
        event["error"] = kind.__name__ if kind else "unknown"
        event["where"] = frame_places(trace)
    return event


def frame_places(trace: TracebackType | None) -> list[str]:
    found = [f"{Path(frame.f_code.co_filename).name}:{line} {frame.f_code.co_name}" for frame, line in walk_tb(trace)]
    return found[-MAX_FRAMES:]


class LibraryLogHandler(logging.Handler):
    """Passes on records of libraries: logger, format string and exception type, without their arguments."""

    def __init__(self) -> None:
        super().__init__()
        self._last: tuple[str, str] = ("", "")
        self._until = 0.0

    @override
    def emit(self, record: logging.LogRecord) -> None:
        # A library that fails in a loop (such as a listener without free descriptors) is logged once a second.
        this = (record.name, str(record.msg))
        if this == self._last and record.created < self._until:
            return
        self._last, self._until = this, record.created + REPEAT_SECONDS
        fields: dict[str, Any] = {
            "logger": record.name,
            "message": _message_template(record),
        }
        if record.exc_info:
            fields |= {
                "error": getattr(record.exc_info[0], "__name__", "-"),
                "where": frame_places(record.exc_info[2]),
            }
        structlog.get_logger(record.name).log(record.levelno, "library", **fields)


def _message_template(record: logging.LogRecord) -> str:
    """The format string of a record. Without arguments it may be formatted already and is left out."""
    written = bool(record.args) or record.name.startswith("uvicorn")
    return str(record.msg)[:200] if written else "-"


def pass_logs_on() -> None:
    """For programs that use the library: hand our events to the loggers of `logging`, unless they use structlog too."""
    if structlog.is_configured():
        return
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            replace_exception,
            structlog.processors.KeyValueRenderer(key_order=["event"]),
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
