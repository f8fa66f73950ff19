"""A place in the history, newest first: a time, or the very run that a page ended with."""

import re
from dataclasses import dataclass

from frontdesk.errors import Invalid
from frontdesk.schedule.model import Past, us
from frontdesk.schedule.words import times

SHAPE = re.compile(r"(\d{1,18})\.([\w.:-]{1,64})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Place:
    """What was intended before `intended_us`; with an `id` also what was intended then, and comes after that run."""

    intended_us: int
    id: str | None = None

    def __str__(self) -> str:
        return f"{self.intended_us}.{self.id or ''}"

    @classmethod
    def of(cls, last: Past) -> "Place":
        """Where a page goes on that ended with this run."""
        return cls(last.intended_us, last.id)

    @classmethod
    def read(cls, text: str) -> "Place":
        """As it was handed out, or a time with an offset."""
        if found := SHAPE.fullmatch(text.strip()):
            return cls(int(found[1]), found[2])
        try:
            return cls(us(times.parse(text)))
        except Invalid as error:
            raise Invalid(
                "`before` is a time with Z or an offset, such as 2025-12-25T10:00:00Z, or `next` of the page before"
            ) from error
