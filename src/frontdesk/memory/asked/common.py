"""What the arguments of the room's tools and routes are made of."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from frontdesk.loop.text import json_object
from frontdesk.loop.tools import Given

LONG = 100_000
TAGS = 50
SEPARATORS = ","


def _listed(value: object) -> object:
    """Words also where they came as one text, with commas between them, as many clients send them."""
    if isinstance(value, str):
        return [word.strip() for word in value.split(SEPARATORS) if word.strip()]
    return value


def _kept(value: dict[str, Any]) -> dict[str, Any]:
    found = json_object(value)
    if found is None:
        raise ValueError("must be a JSON object that is not nested deeper than 64 levels")
    return dict(found)


Text = Annotated[str, Field(max_length=LONG)]
Line = Annotated[str, Field(max_length=300)]
Word = Annotated[str, Field(min_length=1, max_length=100)]
Tags = Annotated[list[Word], Field(max_length=TAGS), BeforeValidator(_listed)]
Id = Annotated[str, Field(min_length=1, max_length=100)]
Percent = Annotated[int, Field(ge=0, le=100)]
Minutes = Annotated[int, Field(gt=0, le=10_000_000)]
Dollars = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Ten = Annotated[int, Field(ge=1, le=10)]
Five = Annotated[int, Field(ge=-5, le=5)]
Arousal = Annotated[int, Field(ge=0, le=5)]
Salience = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Latitude = Annotated[float, Field(ge=-90, le=90, allow_inf_nan=False)]
Longitude = Annotated[float, Field(ge=-180, le=180, allow_inf_nan=False)]
Order = Literal["asc", "desc"]
Zone = Annotated[
    str, Field(max_length=64, description="Time zone as an IANA name, e.g. Europe/Berlin; yours if left out.")
]
When = Annotated[
    str, Field(max_length=64, description="A day (2026-11-20), or an ISO 8601 time (2026-11-20T09:00:00+01:00).")
]
Metadata = Annotated[dict[str, Any], AfterValidator(_kept)]


class Asked(Given):
    """The base of them all: what is not known is refused, and what is said to be nothing counts as not said."""

    @model_validator(mode="before")
    @classmethod
    def _unsaid(cls, given: object) -> object:
        """Without what is null where that is no value: models send it for whatever they have no word on."""
        if not isinstance(given, dict):
            return given
        never = {name for name, field in cls.model_fields.items() if field.default is not None}
        said = cast("dict[str, object]", given)
        return {name: value for name, value in said.items() if value is not None or name not in never}

    def said(self, *but: str) -> Mapping[str, Any]:
        """What was given, by name, without what is null: models send that for what they have no word on."""
        return self.model_dump(exclude_unset=True, exclude_none=True, exclude=set(but))

    def changes(self, *but: str) -> Mapping[str, Any]:
        """What was given, by name; null takes a thing away."""
        return self.model_dump(exclude_unset=True, exclude=set(but))


class Nothing(Asked):
    """Nothing to say."""


class Which(Asked):
    """One record."""

    id: Id = Field(description="Its id.")


class Paged(Asked):
    """Which part of a list."""

    limit: int = Field(20, ge=1, le=100, description="At most so many.")
    offset: int = Field(0, ge=0, le=10_000_000, description="Leave out so many first.")
