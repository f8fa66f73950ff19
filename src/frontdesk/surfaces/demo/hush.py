"""Leaves out of the log what a story tells on purpose."""

from collections.abc import MutableMapping
from typing import Any

import structlog


def hush(expected: str) -> None:
    """From here on, events of this name are not logged; everything else is, as before."""

    def without(_logger: object, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        if event.get("event") == expected:
            raise structlog.DropEvent
        return event

    structlog.configure(processors=[without, *structlog.get_config()["processors"]])
