"""Shows how far a piece of work is, and says what became of it."""

import re
import shutil
from types import TracebackType
from typing import Self, TextIO

from frontdesk.loop.text import some_of
from frontdesk.surfaces.cli.plain import line
from frontdesk.tools.catalogue.crawl import Stage, Step

ERASE = "\r\x1b[K"
NAMED = 3
REVIEW = "frontdesk tools review"
# As a crawl sums up the tools that somebody should look at: `2 taken (a, b)`.
CHANGED = re.compile(r"(?:(?<=; )|^)(\d+) (taken|held) \((.*?)\)(?=; |$)")


class Told:
    """`now` is for a terminal alone, on one line that changes; `done` is for whatever else reads along."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live = out.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live:
            print(ERASE, end="", file=self._out, flush=True)

    def now(self, text: str) -> None:
        if self._live:
            shown = line(text, shutil.get_terminal_size().columns - 1)
            print(f"{ERASE}{shown}", end="", file=self._out, flush=True)

    def done(self, text: str) -> None:
        if not self._live:
            print(line(text), file=self._out, flush=True)


class Servers:
    """Follows a crawl: how many servers are done, and which are being asked."""

    def __init__(self, told: Told, total: int) -> None:
        self._told = told
        self._total = total
        self._over = 0
        self._asked: list[str] = []

    def step(self, step: Step) -> None:
        if step.stage is Stage.STARTED:
            self._asked.append(step.server)
        else:
            self._over += 1
            if step.server in self._asked:
                self._asked.remove(step.server)
        waiting = some_of(self._asked, NAMED)
        self._told.now(f"asked {self._over} of {self._total} servers" + (f"; waiting for {waiting}" if waiting else ""))


def outcome(step: Step) -> str:
    """What became of asking one server, in words."""
    if step.stage is Stage.FAILED:
        return f"failed: {step.told}"
    if step.stage is not Stage.LISTED:
        return step.told or "is being asked elsewhere"
    return f"{step.tools} tools" + (f" ({CHANGED.sub(_changed, step.told)})" if step.told else "")


def _changed(found: re.Match[str]) -> str:
    count, kind, names = found.groups()
    if kind == "held":
        return f"{count} changed and held back: {names}; {REVIEW}"
    return f"{count} changed, and in use as it is now: {names}; look at it: {REVIEW}"
