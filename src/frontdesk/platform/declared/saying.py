"""Puts names out of a file into sentences, with the one that somebody may have meant."""

import difflib
import re
from collections.abc import Iterable

from frontdesk.loop.text import one_line

# Comparing takes a while for each, and who has more of them has no use for a guess.
MOST = 500
LONGEST = 128
SHOWN = 60
SHORTEST_PART = 4
NOT_A_LETTER = re.compile(r"[\W_]+")


def quoted(text: str) -> str:
    """Something that a file says, fit to be part of a sentence."""
    return f"'{one_line(text, SHOWN)}'"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The one that is spelt most alike, else the shortest that holds the name or is held by it: `sendMail` is found as
    `mcp_Mail_graph_send_mail`, too."""
    spelt = {_bare(one): one for one, _ in zip(known, range(MOST), strict=False)}
    wanted = _bare(name)
    near = difflib.get_close_matches(wanted, spelt, 1) or sorted(
        _holding(wanted, spelt), key=lambda one: (len(one), one)
    )
    return spelt[near[0]] if near else None


def meant(name: str, known: Iterable[str]) -> str:
    """The same as the end of a sentence, empty where nothing is near."""
    near = nearest(name, known)
    return f"; did you mean {quoted(near)}?" if near else ""


def _bare(name: str) -> str:
    return NOT_A_LETTER.sub("", name[:LONGEST]).lower()


def _holding(wanted: str, spelt: Iterable[str]) -> list[str]:
    return [one for one in spelt if min(len(one), len(wanted)) >= SHORTEST_PART and (wanted in one or one in wanted)]
