"""Collects what is wrong with a manifest while it is read."""

from collections.abc import Collection

from frontdesk.platform.declared.model import Level, Problem
from frontdesk.platform.declared.saying import meant

# More than anybody reads; a file of megabytes may hold one a line.
MOST = 1000
# Each may take a tenth of a second, where there is much to choose from.
MOST_GUESSES = 50


class Notes:
    """Keeps the first so many problems and counts the rest."""

    def __init__(self) -> None:
        self._kept: list[Problem] = []
        self._beyond = 0
        self._worst = Level.WARNING
        self._guesses = 0

    def error(self, where: str, what: str) -> None:
        self.note(Level.ERROR, where, what)

    def warn(self, where: str, what: str) -> None:
        self.note(Level.WARNING, where, what)

    def note(self, level: Level, where: str, what: str) -> None:
        if len(self._kept) < MOST:
            self._kept.append(Problem(level, where, what))
            return
        self._beyond += 1
        if level is Level.ERROR:
            self._worst = level

    def meant(self, name: str, known: Collection[str]) -> str:
        """What somebody may have meant, as the end of a sentence; empty where nothing is near, or guesses are over."""
        self._guesses += 1
        return meant(name, known) if self._guesses <= MOST_GUESSES else ""

    @property
    def problems(self) -> tuple[Problem, ...]:
        if not self._beyond:
            return tuple(self._kept)
        rest = Problem(self._worst, "and so on", f"{self._beyond} more of this kind; mend these first")
        return (*self._kept, rest)
