"""Categories over HTTP, under /api/categories."""

from typing import Annotated

from fastapi import APIRouter, Body

from frontdesk.memory.asked.timeline import CategoryContent, CreateCategory
from frontdesk.memory.service import MemoryRoom
from frontdesk.surfaces.rest.memory import examples
from frontdesk.surfaces.rest.memory.examples import sent, shown
from frontdesk.surfaces.rest.memory.told import CategoryList, Message, OneCategory
from frontdesk.surfaces.rest.memory.who import ReadsCategories, WritesCategories

ONE = "/categories/{category_id}"
CATEGORY = {"category": examples.category}


def add_categories(router: APIRouter, room: MemoryRoom) -> None:
    """One is found by its id, or by its name."""

    @router.get("/categories", responses=shown({"categories": [examples.category]}), summary="Categories by name")
    async def list_categories(scope: ReadsCategories) -> CategoryList:
        return CategoryList(categories=await room.categories.every(scope))

    @router.post("/categories", status_code=201, responses=shown(CATEGORY, 201), summary="Make a category")
    async def create_category(
        scope: WritesCategories,
        asked: Annotated[CreateCategory, Body(openapi_examples=sent(examples.NEW_CATEGORY))],
    ) -> OneCategory:
        return OneCategory(category=await room.categories.create(scope, asked.said()))

    @router.get(ONE, responses=shown(CATEGORY), summary="A category, by its id or its name")
    async def show_category(scope: ReadsCategories, category_id: str) -> OneCategory:
        return OneCategory(category=await room.categories.get(scope, category_id))

    @router.put(ONE, responses=shown(CATEGORY), summary="Change a category")
    async def update_category(scope: WritesCategories, category_id: str, asked: CategoryContent) -> OneCategory:
        return OneCategory(category=await room.categories.update(scope, category_id, asked.changes()))

    @router.delete(ONE, summary="Delete a category; what was under it stays, under none")
    async def delete_category(scope: WritesCategories, category_id: str) -> Message:
        await room.categories.delete(scope, category_id)
        return Message(message="Category deleted")
