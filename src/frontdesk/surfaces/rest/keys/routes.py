"""A person's own keys, under /api/user/api-keys: for somebody who has logged in, and not for a key."""

import json
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Request, Security
from fastapi.routing import APIRoute
from starlette.responses import JSONResponse, Response
from typing_extensions import override

from frontdesk.app import App
from frontdesk.identity.model import Caller
from frontdesk.identity.own_keys import require_login
from frontdesk.surfaces.rest.callers import by_header
from frontdesk.surfaces.rest.calls import CALLER, CREDENTIAL, recorded
from frontdesk.surfaces.rest.keys.shapes import (
    ChangedKey,
    Deleted,
    KeyList,
    KeyShape,
    MadeKey,
    NewKey,
    OneKey,
    Rotation,
    ShownKey,
)
from frontdesk.surfaces.rest.shapes import REFUSED

PATH = "/user/api-keys"


def add_key_routes(api: FastAPI, app: App, prefix: str) -> None:
    """`prefix` is where the API is mounted."""
    router = APIRouter(prefix=PATH, route_class=_told(recorded(app, prefix, by_header)), responses=REFUSED)
    _add_listing(router, app)
    _add_changing(router, app)
    api.include_router(router)


def _logged_in(request: Request, _shown: Annotated[object, Security(CREDENTIAL)]) -> Caller:
    """Before anything else is looked at."""
    caller: Caller = request.scope[CALLER]
    require_login(caller)
    return caller


Person = Annotated[Caller, Security(_logged_in)]


def _add_listing(router: APIRouter, app: App) -> None:
    keys = app.identity.own_keys

    @router.get("", summary="One's own keys, the newest first")
    async def list_api_keys(caller: Person) -> KeyList:
        return KeyList(data=[KeyShape.of(key) for key in await keys.list(caller)])

    @router.post("", status_code=201, summary="Make a key; it is told this once")
    async def create_api_key(asked: NewKey, caller: Person) -> MadeKey:
        made = await keys.create(caller, asked.name, frozenset(asked.scopes), asked.lifetime)
        return MadeKey(data=ShownKey.with_text(*made))


def _add_changing(router: APIRouter, app: App) -> None:
    keys = app.identity.own_keys

    @router.put("/{key_id}", summary="Rename a key, switch it off or on, or let it do more or less")
    async def update_api_key(key_id: str, asked: ChangedKey, caller: Person) -> OneKey:
        return OneKey(data=KeyShape.of(await keys.change(caller, key_id, asked.changes)))

    @router.delete("/{key_id}", summary="End a key for good")
    async def delete_api_key(key_id: str, caller: Person) -> Deleted:
        await keys.delete(caller, key_id)
        return Deleted()

    @router.post("/{key_id}/rotate", status_code=201, summary="Put a new key in the place of one; it is told this once")
    async def rotate_api_key(key_id: str, caller: Person, asked: Rotation | None = None) -> MadeKey:
        return MadeKey(data=ShownKey.with_text(*await keys.rotate(caller, key_id, (asked or Rotation()).overlap)))


def _told(route: type[APIRoute]) -> type[APIRoute]:
    """Routes that also say so in the body where a request did not succeed, as clients of these read it there."""

    class Told(route):
        @override
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            inner = super().get_route_handler()

            async def handle(request: Request) -> Response:
                answer = await inner(request)
                # Whoever is not let in is told what everybody is told.
                if answer.status_code in (400, 403, 404, 409):
                    body = {**json.loads(bytes(answer.body)), "success": False}
                    kept = {name: value for name, value in answer.headers.items() if name != "content-length"}
                    return JSONResponse(body, answer.status_code, kept)
                return answer

            return handle

    return Told
