"""Words whatever their case, on databases that know the capitals of A to Z and on those that know all."""

from string import ascii_lowercase, ascii_uppercase

LOWERED = str.maketrans(ascii_uppercase, ascii_lowercase)


def spellings(text: str) -> tuple[str, ...]:
    """How a text may stand in a column of which the database has lowered what it can: SQLite lowers A to Z alone."""
    if text.isascii():
        return (text.lower(),)
    ways = (text.lower(), text.upper(), text.title(), text)
    return tuple(dict.fromkeys(way.translate(LOWERED) for way in ways))
