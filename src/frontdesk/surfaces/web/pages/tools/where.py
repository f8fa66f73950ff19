"""Where a tool server stands, as far as it can be shown: of a command, the words that can hardly be a secret; pure."""

import re
from collections.abc import Iterator, Sequence

from frontdesk.tools.catalogue.servers import ServerSpec, Transport

# Options by their names, paths, scripts, and packages with a scope. Keys and passwords look otherwise.
PLAIN = re.compile(
    r"-[A-Za-z]|--[a-z][a-z-]*|(\.{0,2}|~)/[\w./@ -]+|[\w-]+\.(py|js|mjs|cjs|ts|jar)|@[a-z\d-]+/[a-z\d.-]+(@[\w.]+)?"
)
# What follows these is what is run; what follows any other option is its value, and may be a password.
RUNNERS = frozenset({"-m", "-y", "--yes", "--from", "--directory"})
# What is run, such as a package or a module: the first word that is neither. Later ones may be anything.
FIRST = re.compile(r"[a-z]+([-_.][a-z]+)*(@[\w.]+)?")
HIDDEN = "…"
LONGEST = 120


def where(spec: ServerSpec) -> str:
    """The address without what may be secret in it, or the command with its arguments."""
    if spec.transport is not Transport.STDIO:
        return spec.place
    return " ".join((spec.place, *_shown(spec.args)))


def _shown(arguments: Sequence[str]) -> Iterator[str]:
    first = True
    for before, word in zip(("", *arguments), arguments, strict=False):
        is_value = before.startswith("-") and before not in RUNNERS and not word.startswith("-")
        known = PLAIN.fullmatch(word) or (first and FIRST.fullmatch(word))
        yield word if known and len(word) <= LONGEST and not is_value else HIDDEN
        first = first and word.startswith("-")
