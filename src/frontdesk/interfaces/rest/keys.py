"""Serves a person's own API keys under /api/user/api-keys."""

import json
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, FastAPI, Request, Security
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt, WithJsonSchema
from starlette.responses import JSONResponse, Response
from typing_extensions import override

from frontdesk.app import App
from frontdesk.identity.key_service import require_login
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import DEFAULT_KEY_SCOPES, MEMORY_SCOPES
from frontdesk.interfaces.rest.chat_models import NotBlank, Storable
from frontdesk.interfaces.rest.errors import ERROR_RESPONSES
from frontdesk.interfaces.rest.routing import CALLER_KEY, CREDENTIAL_SCHEME, identify_by_header, recorded_route

EXAMPLE_KEY_ID = "7Hq2mXw9RtLc"
EXAMPLE_KEY = f"zm_{EXAMPLE_KEY_ID}_0123456789abcdefghijABCDEFGHIJ0123456789abc_4fT9aZ"
OVERLAP_HOURS = 24
KNOWN_SCOPES = ", ".join(MEMORY_SCOPES)


def _known_scope(scope: str) -> str:
    if scope not in MEMORY_SCOPES:
        raise ValueError(f"there is no such scope; there are: {KNOWN_SCOPES}")
    return scope


KeyName = Annotated[str, Field(min_length=1, max_length=100, examples=["my laptop"]), Storable, NotBlank]
OneScope = Annotated[str, AfterValidator(_known_scope), WithJsonSchema({"type": "string", "enum": list(MEMORY_SCOPES)})]
Scopes = Annotated[list[OneScope], Field(min_length=1, max_length=100, examples=[list(DEFAULT_KEY_SCOPES)])]


class KeyRequest(BaseModel):
    """Unknown fields are refused, so that no limit is lost by a typing error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class NewKeyRequest(KeyRequest):
    """A new key."""

    name: KeyName
    scopes: Scopes = Field(default_factory=lambda: list(DEFAULT_KEY_SCOPES), description="What it may do.")
    expires_in_days: Annotated[StrictInt, Field(ge=1, le=3650)] | None = Field(
        None, description="For how long it works; for ever when left out."
    )

    @property
    def lifetime(self) -> timedelta | None:
        return timedelta(days=self.expires_in_days) if self.expires_in_days else None


class ChangeKeyRequest(KeyRequest):
    """The changes of a key; fields that are left out stay."""

    name: KeyName | None = None
    is_active: StrictBool | None = Field(None, description="One that is not active does not work until it is again.")
    scopes: Scopes | None = None

    @property
    def changes(self) -> Mapping[str, Any]:
        given = self.model_dump(exclude_none=True)
        return {**given, "scopes": frozenset(given["scopes"])} if "scopes" in given else given


class RotateKeyRequest(KeyRequest):
    """The replacement of a key."""

    overlap_hours: Annotated[StrictInt, Field(ge=0, le=720, description="For how long the old one still works.")] = (
        OVERLAP_HOURS
    )

    @property
    def overlap(self) -> timedelta:
        return timedelta(hours=self.overlap_hours)


class KeyResponse(BaseModel):
    """A key, without its secret."""

    id: Annotated[str, Field(examples=[EXAMPLE_KEY_ID])]
    name: Annotated[str, Field(examples=["my laptop"])]
    key_preview: Annotated[str, Field(examples=["zm_***4fT9aZ"])]
    scopes: Annotated[list[str] | None, Field(examples=[list(DEFAULT_KEY_SCOPES)], description="null: not limited.")]
    is_active: bool
    last_used_at: datetime | None
    expires_at: datetime | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def fields_of(cls, key: ApiKey) -> dict[str, Any]:
        return {
            "id": key.id,
            "name": key.name,
            "key_preview": key.preview,
            "scopes": None if key.scopes is None else sorted(key.scopes),
            "is_active": key.is_active,
            "last_used_at": key.last_used_at,
            "expires_at": key.expires_at,
            "created_at": key.created_at,
            "updated_at": key.updated_at or key.created_at,
        }

    @classmethod
    def of(cls, key: ApiKey) -> "KeyResponse":
        return cls(**cls.fields_of(key))


class KeyWithSecret(KeyResponse):
    """A key with its secret, which is shown only once."""

    api_key: Annotated[str, Field(examples=[EXAMPLE_KEY])]

    @classmethod
    def with_secret(cls, key: ApiKey, text: str) -> "KeyWithSecret":
        return cls(**cls.fields_of(key), api_key=text)


class KeySuccessResponse(BaseModel):
    """The request succeeded."""

    success: Literal[True] = True


class KeyListResponse(KeySuccessResponse):
    """The person's own keys, the newest first."""

    data: list[KeyResponse]


class SingleKeyResponse(KeySuccessResponse):
    """One of the person's own keys."""

    data: KeyResponse


class NewKeyResponse(KeySuccessResponse):
    """The new key."""

    data: KeyWithSecret


class DeletedKeyResponse(KeySuccessResponse):
    """The deleted key, which no longer works."""

    message: str = "API key deleted"


KEYS_PATH = "/user/api-keys"


def add_key_routes(api: FastAPI, app: App, prefix: str) -> None:
    """Add the routes; `prefix` is where the API is mounted."""
    router = APIRouter(
        prefix=KEYS_PATH,
        route_class=_with_success_field(recorded_route(app, prefix, identify_by_header)),
        responses=ERROR_RESPONSES,
    )
    _add_list_and_create(router, app)
    _add_changes(router, app)
    api.include_router(router)


def _logged_in(request: Request, _shown: Annotated[object, Security(CREDENTIAL_SCHEME)]) -> Caller:
    """Require a login before anything else of the request is checked."""
    caller: Caller = request.scope[CALLER_KEY]
    require_login(caller)
    return caller


LoggedInCaller = Annotated[Caller, Security(_logged_in)]


def _add_list_and_create(router: APIRouter, app: App) -> None:
    keys = app.identity.own_keys

    @router.get("", summary="One's own keys, the newest first")
    async def list_api_keys(caller: LoggedInCaller) -> KeyListResponse:
        return KeyListResponse(data=[KeyResponse.of(key) for key in await keys.list(caller)])

    @router.post("", status_code=201, summary="Make a key; it is told this once")
    async def create_api_key(request: NewKeyRequest, caller: LoggedInCaller) -> NewKeyResponse:
        made = await keys.create(caller, request.name, frozenset(request.scopes), request.lifetime)
        return NewKeyResponse(data=KeyWithSecret.with_secret(*made))


def _add_changes(router: APIRouter, app: App) -> None:
    keys = app.identity.own_keys

    @router.put("/{key_id}", summary="Rename a key, switch it off or on, or let it do more or less")
    async def update_api_key(key_id: str, request: ChangeKeyRequest, caller: LoggedInCaller) -> SingleKeyResponse:
        return SingleKeyResponse(data=KeyResponse.of(await keys.change(caller, key_id, request.changes)))

    @router.delete("/{key_id}", summary="End a key for good")
    async def delete_api_key(key_id: str, caller: LoggedInCaller) -> DeletedKeyResponse:
        await keys.delete(caller, key_id)
        return DeletedKeyResponse()

    @router.post("/{key_id}/rotate", status_code=201, summary="Put a new key in the place of one; it is told this once")
    async def rotate_api_key(
        key_id: str, caller: LoggedInCaller, request: RotateKeyRequest | None = None
    ) -> NewKeyResponse:
        return NewKeyResponse(
            data=KeyWithSecret.with_secret(*await keys.rotate(caller, key_id, (request or RotateKeyRequest()).overlap))
        )


def _with_success_field(route: type[APIRoute]) -> type[APIRoute]:
    """Routes that add `success` to the body of an error, because their clients read it there."""

    class KeyErrorRoute(route):
        @override
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            inner = super().get_route_handler()

            async def handle(request: Request) -> Response:
                answer = await inner(request)
                # Other refusals, such as a 401, keep the format of all routes.
                if answer.status_code in (400, 403, 404, 409):
                    body = {**json.loads(bytes(answer.body)), "success": False}
                    kept = {name: value for name, value in answer.headers.items() if name != "content-length"}
                    return JSONResponse(body, answer.status_code, kept)
                return answer

            return handle

    return KeyErrorRoute
