"""What a session is called: by what was first said in it; pure."""

LONGEST = 60
MORE = "…"


def titled(text: str) -> str:
    """The first line that says something, on one line, and no longer than a list has room for."""
    line = next((" ".join(line.split()) for line in text.splitlines() if line.strip()), "")
    if len(line) <= LONGEST:
        return line
    kept = line[:LONGEST]
    # One long word, such as an address, is cut where it has to be.
    head, _, _ = kept.rpartition(" ")
    return f"{(head or kept[:-1]).rstrip()}{MORE}"
