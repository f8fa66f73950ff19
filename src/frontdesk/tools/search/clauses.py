"""Cuts a long query into the parts that may each be after a tool of their own."""

import re

CUT = re.compile(r"(?<=[.!?;])\s+|\n+|,?\s+(?:and then|then|and also|also)\s+|;\s*")
# Each part costs an embedding; the fourth adds little, and a short query has no parts worth one.
MOST = 3
LONG = 20
SHORTEST = 3


def clauses(text: str) -> list[str]:
    """The texts to embed for a query: the whole first, then the parts of a long one, a few at most."""
    whole = text.strip()
    if len(whole.split()) < LONG:
        return [whole]
    parts = [part.strip(" ,.;") for part in CUT.split(whole)]
    parts = [part for part in parts if len(part.split()) >= SHORTEST]
    return [whole, *parts[:MOST]] if len(parts) > 1 else [whole]
