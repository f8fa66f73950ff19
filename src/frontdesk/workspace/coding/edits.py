"""Puts one piece of a text in the place of another; no I/O."""

from collections.abc import Iterator
from dataclasses import dataclass

from frontdesk.errors import Invalid

LF, CRLF = "\n", "\r\n"


@dataclass(frozen=True, slots=True)
class Edited:
    """The whole text as it is then, the line of the first change counted from 1, and how many there are."""

    text: str
    line: int
    count: int


def edited(text: str, old: str, new: str, *, every: bool = False) -> Edited:
    """A text with `new` for `old`; `Invalid` where that changes nothing, or it is not clear what is meant."""
    if old == new:
        raise Invalid("old_string and new_string are the same, so nothing would change")
    for wanted, given in _spellings(text, old, new):
        count = text.count(wanted)
        if count > 1 and not every:
            raise Invalid(
                f"old_string is there {count} times; give more of the lines around the one you mean, or set replace_all"
            )
        if count:
            changed = text.replace(wanted, given)
            if changed == text:
                raise Invalid("old_string and new_string differ in their line ends alone, so nothing would change")
            return Edited(changed, text.count(LF, 0, text.index(wanted)) + 1, count)
    raise Invalid("old_string is not in the file; read it again, and copy what is there with its spaces and line ends")


def _spellings(text: str, old: str, new: str) -> Iterator[tuple[str, str]]:
    """Both with the line ends that most of the text has, then with the others, then as they were given."""
    crlf = text.count(CRLF)
    usual = crlf > text.count(LF) - crlf
    for ends in (CRLF, LF) if usual else (LF, CRLF):
        yield _ended(old, ends), _ended(new, ends)
    yield old, new


def _ended(text: str, ends: str) -> str:
    return text.replace(CRLF, LF).replace(LF, ends)
