"""How much there is of what a bare list shows a part of."""

from collections.abc import Sequence
from typing import TypeVar

from starlette.responses import Response

from frontdesk.memory.given import Page

T = TypeVar("T")


def counted(page: Page[T], answer: Response) -> Sequence[T]:
    """What is on the page; how much there is in all goes into a header."""
    answer.headers["X-Total-Count"] = str(page.total)
    return page.items
