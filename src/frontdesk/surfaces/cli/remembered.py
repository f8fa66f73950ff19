"""Prints what the memory room counts."""

from collections.abc import Mapping
from typing import Any, cast

from frontdesk.surfaces.cli.plain import line
from frontdesk.surfaces.cli.words import ABSENT, dumped

WIDTH = 26


def tell_figures(figures: Mapping[str, Any], *, as_json: bool) -> None:
    """One JSON object, or a line for each figure; of what is counted by name, what there is none of goes unsaid."""
    if as_json:
        print(dumped(figures))
        return
    for name, value in figures.items():
        print(f"{name.replace('_', ' '):<{WIDTH}}{_figure(value)}".rstrip())


def _figure(value: object) -> str:
    match value:
        case None:
            return ABSENT
        case dict():
            counts = cast("Mapping[str, object]", value)
            said = {line(str(name)).replace("_", " "): number for name, number in counts.items() if number}
            return ", ".join(f"{name} {_figure(number)}" for name, number in said.items()) or ABSENT
        case float():
            return f"{value:g}"
        case int() if not isinstance(value, bool):
            return f"{value:,}"
        case _:
            return line(str(value))
