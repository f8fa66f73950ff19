"""Compares what a server lists with what is known of it; decides, and does nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from frontdesk.loop.text import some_of
from frontdesk.tools.catalogue.sifting import Listed, differences
from frontdesk.tools.model import Standing

NAMED = 5


class Kind(StrEnum):
    """What became of a tool since its server was last asked.

    NEW was never seen. BACK had gone, and is as it was. GONE is listed no more. TAKEN changed, and the new version
    counts, flagged. HELD changed, and the approved version counts until somebody has looked. SETTLED is again as it
    was approved, so that nothing is left to look at.
    """

    NEW = "new"
    BACK = "back"
    GONE = "gone"
    TAKEN = "taken"
    HELD = "held"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True)
class Known:
    """A tool as the catalogue has it.

    `seal` is that of the version that counts. Once it `changed`, `other` is that of the one that does not: the new
    one of a held tool, else the approved one. `refused` is that of a version which somebody did not want.
    """

    name: str
    api_name: str
    seal: str
    standing: Standing = Standing.READY
    changed: bool = False
    other: str | None = None
    refused: str | None = None
    gone: bool = False

    @property
    def approved(self) -> str:
        taken = self.changed and self.standing is Standing.READY
        return self.other or self.seal if taken else self.seal


@dataclass(frozen=True, slots=True)
class Change:
    """One tool's. `what` says how a TAKEN or HELD version differs from the one that was approved."""

    kind: Kind
    name: str
    listed: Listed | None = None
    what: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is to be written, what a person should hear of it, and how many tools the server has then."""

    changes: Sequence[Change]
    problems: Sequence[str]
    tools: int

    def count(self, kind: Kind) -> int:
        return sum(change.kind is kind for change in self.changes)

    @property
    def summary(self) -> str:
        """`3 new, 2 gone (a, b)`; empty where nothing changed."""
        told: list[str] = []
        for kind in Kind:
            names = [change.name for change in self.changes if change.kind is kind]
            told += [f"{len(names)} {kind} ({some_of(names, NAMED)})"] if names else []
        return "; ".join(told)


def compare(known: Mapping[str, Known], listed: Sequence[Listed], *, hold: bool) -> Comparison:
    """What a listing changes; with `hold`, a tool that differs from what was approved waits for somebody."""
    api_names = {tool.api_name: tool.name for tool in known.values()}
    changes: list[Change] = []
    problems: list[str] = []
    for tool in listed:
        before = known.get(tool.name)
        if before is None and tool.api_name in api_names:
            problems.append(f"tool {tool.name!r} is left out: models could not tell it from a former one")
        elif before is None:
            changes.append(Change(Kind.NEW, tool.name, tool))
        else:
            changes += _change(before, tool, hold=hold)
    names = {tool.name for tool in listed}
    changes += [Change(Kind.GONE, name) for name, tool in known.items() if not tool.gone and name not in names]
    return Comparison(changes, problems, len(listed) - len(problems))


def _change(before: Known, now: Listed, *, hold: bool) -> Iterator[Change]:
    if now.seal == before.seal and before.standing is Standing.READY:
        if before.gone:
            yield Change(Kind.BACK, now.name)
    elif now.seal in (before.approved, before.refused):
        if before.changed or before.gone:
            yield Change(Kind.SETTLED if before.changed else Kind.BACK, now.name)
    elif not hold:
        yield Change(Kind.TAKEN, now.name, now, differences(before.approved, now.seal))
    elif before.standing is Standing.READY or now.seal != before.other or before.gone:
        yield Change(Kind.HELD, now.name, now, differences(before.approved, now.seal))
