"""`python -m tests.support.schedules.nursery`: imports everything once, and forks a worker for each line of input.

A Python process that imports Frontdesk takes most of a second to start; a fork of one takes a few milliseconds, so
that two hundred can be killed in a minute.
"""

import gc
import json
import os
import select
import signal
import sys
from contextlib import suppress
from typing import Any

from tests.support.schedules.child import Orders, live, warm


def main() -> None:
    children: set[int] = set()
    awake, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, _wake)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warm()
    gc.freeze()
    _say({"ready": True})
    try:
        _listen(awake, children)
    finally:
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _wake(_signal: int, _frame: object) -> None:
    """Without a handler nothing would be written to the wakeup file."""


def _listen(awake: int, children: set[int]) -> None:
    """Fork on request, and report every end immediately: a zombie's process id would seem alive."""
    waiting = b""
    while True:
        ready, _, _ = select.select([0, awake], [], [])
        if awake in ready:
            os.read(awake, 4096)
            _reap(children)
        if 0 in ready:
            told = os.read(0, 65536)
            if not told:
                return
            *lines, waiting = (waiting + told).split(b"\n")
            for line in lines:
                pid = _fork(json.loads(line))
                children.add(pid)
                _say({"born": pid})


def _fork(said: dict[str, Any]) -> int:
    # A worker that is stopped before it has installed its signal handler gets the signal afterwards.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        return pid
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        live(Orders(**said))
        code = 0
    finally:
        sys.stderr.flush()
        os._exit(code)


def _reap(children: set[int]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        children.discard(pid)
        _say({"gone": pid, "code": os.waitstatus_to_exitcode(status)})


def _say(told: dict[str, object]) -> None:
    sys.stdout.write(f"{json.dumps(told)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
