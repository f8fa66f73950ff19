"""What changed in a memory block, line by line."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

SAME, GONE, NEW = "same", "gone", "new"
# To compare takes the square of this in time.
MOST_LINES = 400
AROUND = 2


@dataclass(frozen=True, slots=True)
class Line:
    """A line that stayed, went or came."""

    kind: str
    text: str


def changes(before: str, after: str) -> Sequence[Line]:
    """The lines that changed, with a few around them; a text of very many lines is shown as all gone and all new."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > MOST_LINES:
        return [Line(GONE, before), Line(NEW, after)]
    found: list[Line] = []
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(AROUND):
        if found:
            found.append(Line(SAME, "…"))
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                found += [Line(SAME, text) for text in old[start:end]]
            else:
                found += [Line(GONE, text) for text in old[start:end]]
                found += [Line(NEW, text) for text in new[new_start:new_end]]
    return found
