"""Measures the cost of the shipped model: processor time for a question, tools a second, memory."""

import resource
import time
from pathlib import Path
from statistics import median

from frontdesk.embedding.builtin import MiniLmModel
from frontdesk.tools.model import tool_text

SHORT = "find a cheap flight from Berlin to Rome next Friday"
LONG = (
    "please look up when the next train leaves for Vienna, reserve two seats by the window, put the trip into my "
    "calendar, and send Anna a message that we arrive in the evening by train"
)
TOOL = tool_text(
    "calendar",
    "create_event",
    "Puts an appointment into a person's calendar and invites others.",
    ["title", "start", "who"],
)
RUNS = 300


def speed(folder: Path) -> int:
    """Prints the lowest quarter, since a busy machine can only add time."""
    before = _megabytes()
    model = MiniLmModel(folder)
    for name, text in (("a question of 12 tokens", SHORT), ("a question of 40 tokens", LONG), ("a tool", TOOL)):
        cost = _milliseconds(model, text)
        print(f"{name}: {cost:.1f} ms of processor time, {1000 / cost:.0f} a second and core")
    print(f"memory: {_megabytes() - before:.0f} MB, the runtime's own among them")
    return 0


def _milliseconds(model: MiniLmModel, text: str) -> float:
    found: list[float] = []
    for _ in range(RUNS):
        start = time.process_time()
        model.vectors([text])
        found.append(1000 * (time.process_time() - start))
    return median(sorted(found)[: RUNS // 2])


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
