"""Declares what a person can ask about keys of their own."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, StrictBool, StrictInt, WithJsonSchema

from frontdesk.coercion import NotBlank, Storable
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.rights import DEFAULT_KEY_SCOPES, MEMORY_ADMIN, MEMORY_SCOPES
from frontdesk.identity.service import Identity
from frontdesk.operations import (
    Call,
    Effect,
    NoArguments,
    Operation,
    OperationRequest,
    Requires,
    RestRoute,
    SuccessResponse,
)

PATH = "/user/api-keys"
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


class NewKeyRequest(OperationRequest):
    """A new key."""

    name: KeyName
    scopes: Scopes = Field(default_factory=lambda: list(DEFAULT_KEY_SCOPES), description="What it may do.")
    expires_in_days: Annotated[StrictInt, Field(ge=1, le=3650)] | None = Field(
        None, description="For how long it works; for ever when left out."
    )

    @property
    def lifetime(self) -> timedelta | None:
        return timedelta(days=self.expires_in_days) if self.expires_in_days else None


class KeyId(OperationRequest):
    """One of the person's own keys."""

    key_id: str


class ChangeKeyRequest(KeyId):
    """The changes of a key; fields that are left out stay."""

    name: KeyName | None = None
    is_active: StrictBool | None = Field(None, description="One that is not active does not work until it is again.")
    scopes: Scopes | None = None

    @property
    def changes(self) -> Mapping[str, Any]:
        changes = self.model_dump(exclude={"key_id"}, exclude_none=True)
        return {**changes, "scopes": frozenset(changes["scopes"])} if "scopes" in changes else changes


class RotateKeyRequest(KeyId):
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

    @staticmethod
    def fields_of(key: ApiKey) -> dict[str, Any]:
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


class KeyListResponse(SuccessResponse):
    """The person's own keys, the newest first."""

    data: list[KeyResponse]


class SingleKeyResponse(SuccessResponse):
    """One of the person's own keys."""

    data: KeyResponse


class NewKeyResponse(SuccessResponse):
    """The new key."""

    data: KeyWithSecret

    @classmethod
    def of(cls, key: ApiKey, text: str) -> "NewKeyResponse":
        return cls(data=KeyWithSecret(**KeyResponse.fields_of(key), api_key=text))


class DeletedKeyResponse(SuccessResponse):
    """The deleted key, which no longer works."""

    message: str = "API key deleted"


async def list_keys(identity: Identity, call: Call, _request: NoArguments) -> KeyListResponse:
    return KeyListResponse(data=[KeyResponse.of(key) for key in await identity.own_keys.list(call.caller)])


async def create_key(identity: Identity, call: Call, request: NewKeyRequest) -> NewKeyResponse:
    scopes = frozenset(request.scopes)
    return NewKeyResponse.of(*await identity.own_keys.create(call.caller, request.name, scopes, request.lifetime))


async def change_key(identity: Identity, call: Call, request: ChangeKeyRequest) -> SingleKeyResponse:
    key = await identity.own_keys.change(call.caller, request.key_id, request.changes)
    return SingleKeyResponse(data=KeyResponse.of(key))


async def delete_key(identity: Identity, call: Call, request: KeyId) -> DeletedKeyResponse:
    await identity.own_keys.delete(call.caller, request.key_id)
    return DeletedKeyResponse()


async def rotate_key(identity: Identity, call: Call, request: RotateKeyRequest) -> NewKeyResponse:
    return NewKeyResponse.of(*await identity.own_keys.rotate(call.caller, request.key_id, request.overlap))


KEY_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="list_api_keys",
        summary="One's own keys, the newest first",
        request=NoArguments,
        run=list_keys,
        scopes=(MEMORY_ADMIN,),
        requires=Requires.LOGIN,
        rest=RestRoute(method="GET", path=PATH, response=KeyListResponse, success_field=True),
    ),
    Operation(
        name="create_api_key",
        summary="Make a key; it is told this once",
        request=NewKeyRequest,
        run=create_key,
        scopes=(MEMORY_ADMIN,),
        requires=Requires.LOGIN,
        effect=Effect.ADDS,
        rest=RestRoute(method="POST", path=PATH, response=NewKeyResponse, status=201, success_field=True),
    ),
    Operation(
        name="update_api_key",
        summary="Rename a key, switch it off or on, or let it do more or less",
        request=ChangeKeyRequest,
        run=change_key,
        scopes=(MEMORY_ADMIN,),
        requires=Requires.LOGIN,
        effect=Effect.CHANGES,
        rest=RestRoute(method="PUT", path=f"{PATH}/{{key_id}}", response=SingleKeyResponse, success_field=True),
    ),
    Operation(
        name="delete_api_key",
        summary="End a key for good",
        request=KeyId,
        run=delete_key,
        scopes=(MEMORY_ADMIN,),
        requires=Requires.LOGIN,
        effect=Effect.CHANGES,
        rest=RestRoute(method="DELETE", path=f"{PATH}/{{key_id}}", response=DeletedKeyResponse, success_field=True),
    ),
    Operation(
        name="rotate_api_key",
        summary="Put a new key in the place of one; it is told this once",
        request=RotateKeyRequest,
        run=rotate_key,
        scopes=(MEMORY_ADMIN,),
        requires=Requires.LOGIN,
        effect=Effect.CHANGES,
        rest=RestRoute(
            method="POST",
            path=f"{PATH}/{{key_id}}/rotate",
            response=NewKeyResponse,
            status=201,
            body_required=False,
            success_field=True,
        ),
    ),
)
