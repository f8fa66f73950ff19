"""Waits for what another thread, task or process does; none of them for ever."""

import threading
from collections.abc import Callable

import anyio

WAIT_SECONDS = 20
POLL_SECONDS = 0.005


async def until(holds: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
    """Wait for it in a task; a `TimeoutError` where it does not come."""
    with anyio.fail_after(seconds):
        while True:
            if holds():
                return
            await anyio.sleep(POLL_SECONDS)


def comes_true(holds: Callable[[], bool], seconds: float = WAIT_SECONDS, every: float = POLL_SECONDS) -> bool:
    """Wait for it in a thread; whether it came, within a bounded number of questions."""
    pause = threading.Event()
    return any(holds() or pause.wait(every) for _ in range(int(seconds / every)))
