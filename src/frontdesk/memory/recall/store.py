"""What can be found of a person's items: their words and, once they were read, their meaning."""

from frontdesk.memory.store import Mine


def put(mine: Mine, item_id: str, text: str) -> None:
    """Have an item found by this text from now on, instead of the one it was found by before."""


def remove(mine: Mine, item_id: str) -> None:
    """Have an item found no longer."""
