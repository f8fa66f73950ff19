"""The name of the application that runs here: what stands for the agent where neither turn nor token names one."""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from threading import Lock

from frontdesk.identity import outbound

VARIABLE = "AGENT365_APPLICATION_NAME"
_reading = Lock()


def get_application_name(environ: Mapping[str, str] = os.environ) -> str | None:
    """The variable, looked at each time, else the name of the project in this folder, read once."""
    return environ.get(VARIABLE) or _read()


def reset_application_name_cache() -> None:
    """Forget what was read: the next call reads the project's file again."""
    _read.cache_clear()
    outbound.project_name.cache_clear()


@cache
def _read() -> str | None:
    # Threads that come first together all get here; those that waited find the file read.
    with _reading:
        try:
            return outbound.project_name(Path.cwd())
        except OSError:
            return None
