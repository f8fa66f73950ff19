"""Says what became of a schedule that was changed."""

from frontdesk.surfaces.cli.plain import line
from frontdesk.surfaces.scheduled import Shape


def tell(shape: Shape, words: str, *, as_json: bool) -> None:
    """One JSON object, or the words."""
    print(shape.model_dump_json() if as_json else line(words))
