"""What concerns a person altogether, over HTTP: where they live, and all of theirs, handed out or erased."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Literal

from fastapi import APIRouter, Response

from frontdesk.memory.service import MemoryRoom
from frontdesk.surfaces.rest.memory.bodies import Erase, PersonSettings
from frontdesk.surfaces.rest.memory.examples import NOON, shown
from frontdesk.surfaces.rest.memory.told import Message, Told
from frontdesk.surfaces.rest.memory.who import Admin, Anybody

ACCEPTED = HTTPStatus.ACCEPTED.value
NOT_EVERYTHING = "Not everything could be erased; `left` says what, and what to do"
SETTINGS = {"timezone": "Europe/Berlin"}
EXPORT: Mapping[str, Any] = {
    "format": "frontdesk-memory",
    "version": 1,
    "exported_at": NOON,
    "user_id": "ada",
    "zone": "Europe/Berlin",
    "records": {"tasks": []},
    "elsewhere": {},
}


class SettingsTold(Told):
    """Where the person is, by the IANA's name of it: what a mere day or time means."""

    timezone: str


class Export(Told):
    """Everything that is kept of a person, by table; and what other rooms keep of them."""

    format: Literal["frontdesk-memory"]
    version: int
    exported_at: str
    user_id: str
    zone: str
    records: Mapping[str, Any]
    elsewhere: Mapping[str, Any]


class ErasedTold(Message):
    """How many records of what are gone; `left` says in words what is not."""

    erased: Mapping[str, int]
    total: int
    left: Sequence[str] = ()


def add_people(router: APIRouter, room: MemoryRoom) -> None:
    @router.get("/user/settings", responses=shown(SETTINGS), summary="In which time zone one lives")
    async def show_settings(scope: Anybody) -> SettingsTold:
        return SettingsTold(timezone=await room.people.zone(scope))

    @router.put("/user/settings", responses=shown(SETTINGS), summary="Say in which time zone one lives")
    async def update_settings(scope: Admin, asked: PersonSettings) -> SettingsTold:
        return SettingsTold(timezone=await room.people.set_zone(scope, asked.timezone))

    @router.get("/user/export", responses=shown(EXPORT), summary="Everything that is kept of oneself")
    async def export_data(scope: Admin) -> Export:
        return Export(**await room.people.export(scope))

    @router.delete(
        "/user/data",
        responses={ACCEPTED: {"model": ErasedTold, "description": "Not everything could be erased"}},
        summary="Erase everything that is kept of oneself; there is no way back",
    )
    async def erase_data(scope: Admin, _sure: Erase, answer: Response) -> ErasedTold:
        erased = await room.people.erase(scope)
        if erased.left:
            answer.status_code = ACCEPTED
        message = NOT_EVERYTHING if erased.left else "Everything is erased"
        return ErasedTold(message=message, erased=erased.counts, total=erased.total, left=erased.left)
