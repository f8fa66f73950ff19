"""What is sent and told of people's own keys."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt, WithJsonSchema

from frontdesk.identity.keys import ApiKey
from frontdesk.identity.rights import MEMORY_SCOPES, USUAL_SCOPES
from frontdesk.surfaces.rest.shapes import NotBlank, Storable

KEY_ID = "7Hq2mXw9RtLc"
TEXT = f"zm_{KEY_ID}_0123456789abcdefghijABCDEFGHIJ0123456789abc_4fT9aZ"
OVERLAP_HOURS = 24
KNOWN = ", ".join(MEMORY_SCOPES)


def _known(scope: str) -> str:
    if scope not in MEMORY_SCOPES:
        raise ValueError(f"there is no such scope; there are: {KNOWN}")
    return scope


Name = Annotated[str, Field(min_length=1, max_length=100, examples=["my laptop"]), Storable, NotBlank]
OneScope = Annotated[str, AfterValidator(_known), WithJsonSchema({"type": "string", "enum": list(MEMORY_SCOPES)})]
Scopes = Annotated[list[OneScope], Field(min_length=1, max_length=100, examples=[list(USUAL_SCOPES)])]


class Asked(BaseModel):
    """What is misspelt is refused, so that no limit is lost silently."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class NewKey(Asked):
    """A key to be made."""

    name: Name
    scopes: Scopes = Field(default_factory=lambda: list(USUAL_SCOPES), description="What it may do.")
    expires_in_days: Annotated[StrictInt, Field(ge=1, le=3650)] | None = Field(
        None, description="For how long it works; for ever when left out."
    )

    @property
    def lifetime(self) -> timedelta | None:
        return timedelta(days=self.expires_in_days) if self.expires_in_days else None


class ChangedKey(Asked):
    """What is to be different; what is left out stays."""

    name: Name | None = None
    is_active: StrictBool | None = Field(None, description="One that is not active does not work until it is again.")
    scopes: Scopes | None = None

    @property
    def changes(self) -> Mapping[str, Any]:
        given = self.model_dump(exclude_none=True)
        return {**given, "scopes": frozenset(given["scopes"])} if "scopes" in given else given


class Rotation(Asked):
    """A key to take another's place."""

    overlap_hours: Annotated[StrictInt, Field(ge=0, le=720, description="For how long the old one still works.")] = (
        OVERLAP_HOURS
    )

    @property
    def overlap(self) -> timedelta:
        return timedelta(hours=self.overlap_hours)


class KeyShape(BaseModel):
    """A key, without its secret."""

    id: Annotated[str, Field(examples=[KEY_ID])]
    name: Annotated[str, Field(examples=["my laptop"])]
    key_preview: Annotated[str, Field(examples=["zm_***4fT9aZ"])]
    scopes: Annotated[list[str] | None, Field(examples=[list(USUAL_SCOPES)], description="null: not limited.")]
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
    def of(cls, key: ApiKey) -> "KeyShape":
        return cls(**cls.fields_of(key))


class ShownKey(KeyShape):
    """A key with its secret, which is told this once."""

    api_key: Annotated[str, Field(examples=[TEXT])]

    @classmethod
    def with_text(cls, key: ApiKey, text: str) -> "ShownKey":
        return cls(**cls.fields_of(key), api_key=text)


class Done(BaseModel):
    """It is done."""

    success: Literal[True] = True


class KeyList(Done):
    """One's own keys, the newest first."""

    data: list[KeyShape]


class OneKey(Done):
    """One of one's own keys."""

    data: KeyShape


class MadeKey(Done):
    """A key that was made."""

    data: ShownKey


class Deleted(Done):
    """A key that works no longer."""

    message: str = "API key deleted"
