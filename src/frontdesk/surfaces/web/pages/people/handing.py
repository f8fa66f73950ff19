"""Everything of a person's: handed out as a file, or erased for good."""

from collections.abc import Iterator, Mapping

from frontdesk.errors import Invalid
from frontdesk.memory.people.document import written
from frontdesk.surfaces.web.model import Asked, Done, Sent, Shown
from frontdesk.surfaces.web.pages.people.acting import named
from frontdesk.surfaces.web.pages.people.whose import Whose

NAMES = {"ai_tasks": "work for agents", "ai_task_events": "steps of that work", "house": "records of other rooms"}


async def look(whose: Whose) -> Shown:
    counts = await whose.room.people.counts(whose.scope)
    return whose.shown("everything", "everything", {"counts": {_named(name): n for name, n in counts.items()}})


async def export(asked: Asked) -> Sent:
    user, scope = named(asked)
    document = await asked.app.memory.people.export(scope)
    return Sent(_encoded(written(document)), f"frontdesk-{_plain(user)}-{asked.now:%Y-%m-%d}.json")


async def erase(asked: Asked) -> Done:
    user, scope = named(asked)
    if asked.form.get("sure", "").strip() != user.strip():
        raise Invalid(
            "Nothing was erased: the id that was typed is not this person's; go back and type it as it is shown"
        )
    gone = await asked.app.memory.people.erase(scope)
    left = f". Not erased: {'; '.join(gone.left)}" if gone.left else ""
    return Done("/people", f"Erased: {_counted(gone.counts)}{left}")


def _encoded(parts: Iterator[str]) -> Iterator[bytes]:
    # A lone half of a character, which JSON can hold and UTF-8 cannot, is written as it stands in JSON.
    return (part.encode(errors="backslashreplace") for part in parts)


def _plain(user: str) -> str:
    """An id as a file can be called."""
    return "".join(char if char.isalnum() or char in "-_@" else "-" for char in user)[:80]


def _counted(counts: Mapping[str, int]) -> str:
    said = [f"{number:,} {_named(name)}" for name, number in counts.items() if number]
    return ", ".join(said) or "nothing was there"


def _named(name: str) -> str:
    return NAMES.get(name, name.replace("_", " "))
