"""The tools for categories."""

from collections.abc import Sequence

from frontdesk.memory.asked import timeline as asked
from frontdesk.memory.asked.common import Nothing
from frontdesk.memory.model import Category
from frontdesk.memory.scope import Scope
from frontdesk.memory.service import MemoryRoom
from frontdesk.memory.tooling.telling.timeline import category_line
from frontdesk.memory.tooling.telling.words import count, lines
from frontdesk.memory.tooling.tool import CHANGES, MAKES, Answer, MemoryTool, Told

LIST = "The person's categories, which tasks, memories and activities are put under, by name."
GET = 'One category, by its id or its name in any case. Example: {"id": "work"}.'
CREATE = (
    "Make a category to put tasks, memories and activities under. "
    'Example: {"name": "Travel", "color": "#1E88E5", "icon": "train"}.'
)
UPDATE = (
    "Change a category's name, colour, description or icon; what is under it stays there. "
    'Example: {"id": "travel", "name": "Journeys"}.'
)
NONE = "There are no categories yet; make one with create_category."


class CategoryAnswer(Answer):
    """One category."""

    category: Category


class CategoriesAnswer(Answer):
    """All categories."""

    categories: Sequence[Category]


async def show(room: MemoryRoom, scope: Scope, _given: Nothing) -> Told:
    found = await room.categories.every(scope)
    head = f"{count(len(found), 'category', 'categories')}:"
    text = lines(head, *map(category_line, found)) if found else NONE
    return Told(text, CategoriesAnswer(categories=found))


async def get(room: MemoryRoom, scope: Scope, given: asked.WhichCategory) -> Told:
    return _told(await room.categories.get(scope, given.id))


async def create(room: MemoryRoom, scope: Scope, given: asked.CreateCategory) -> Told:
    return _told(await room.categories.create(scope, given.said()), "Created.")


async def update(room: MemoryRoom, scope: Scope, given: asked.UpdateCategory) -> Told:
    return _told(await room.categories.update(scope, given.id, given.said("id")), "Changed.")


def _told(category: Category, first: str = "") -> Told:
    return Told(lines(first, category_line(category).removeprefix("- ")), CategoryAnswer(category=category))


CATEGORIES: tuple[MemoryTool, ...] = (
    MemoryTool("get_categories", "List categories", LIST, Nothing, CategoriesAnswer, show),
    MemoryTool("create_category", "Make a category", CREATE, asked.CreateCategory, CategoryAnswer, create, **MAKES),
    MemoryTool("get_category", "Look at a category", GET, asked.WhichCategory, CategoryAnswer, get),
    MemoryTool("update_category", "Change a category", UPDATE, asked.UpdateCategory, CategoryAnswer, update, **CHANGES),
)
