"""The folders a session may touch, and whether a path lies in them once every link is followed."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from frontdesk.errors import Invalid

LONGEST = 4096


@dataclass(frozen=True, slots=True)
class Roots:
    """`cwd` is where relative paths begin; the others are as good. All are absolute, with their own links followed."""

    cwd: Path
    others: tuple[Path, ...] = ()

    @classmethod
    def of(cls, cwd: Path, others: Sequence[Path] = ()) -> "Roots":
        return cls(_real(cwd), tuple(_real(one) for one in others))

    @property
    def all(self) -> tuple[Path, ...]:
        return (self.cwd, *self.others)

    def inside(self, given: str) -> Path:
        """The real path that is meant (`~` is a name like any other); `Invalid` where it is not in these folders."""
        return self._held(_real(self.cwd / _plain(given)), given)

    def entry(self, given: str) -> Path:
        """The same for what is deleted or moved: a link at the very end stands for itself."""
        path = self.cwd / _plain(given)
        if path.name in {"", ".."}:
            return self.inside(given)
        return self._held(_real(path.parent) / path.name, given)

    def shown(self, path: Path) -> str:
        """A path as a person would write it, on one line: from the working folder, where it is in there."""
        return _printable(str(path.relative_to(self.cwd)) if path.is_relative_to(self.cwd) else str(path))

    def split(self, path: Path) -> tuple[Path, tuple[str, ...]]:
        """The outermost of these folders that a path is in by its name alone, and the names from there."""
        plain = Path(os.path.normpath(self.cwd / path))
        around = [root for root in self.all if plain.is_relative_to(root)]
        if not around:
            raise self._outside(str(path))
        root = min(around, key=lambda one: len(one.parts))
        return root, plain.relative_to(root).parts

    def _held(self, path: Path, given: str) -> Path:
        if not any(path.is_relative_to(root) for root in self.all):
            raise self._outside(given)
        return path

    def _outside(self, given: str) -> Invalid:
        return Invalid(f"'{_printable(given[:200])}' is outside the workspace; stay in {', '.join(map(str, self.all))}")


def _plain(given: str) -> str:
    if not given.strip() or "\0" in given or len(given) > LONGEST:
        raise Invalid("Give the path of a file in the workspace")
    return given


def _printable(name: str) -> str:
    return name if name.isprintable() else "".join(one if one.isprintable() else "?" for one in name)


def _real(path: Path) -> Path:
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError, RuntimeError) as error:
        raise Invalid("That path cannot be followed; give a plain one") from error
