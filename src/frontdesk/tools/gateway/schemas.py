"""JSON schemas of foreign servers, read with care: nothing is fetched, no pattern is run, and there is an end to it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from itertools import islice
from typing import Any, Protocol, cast

import jsonschema
import jsonschema.exceptions
import jsonschema.validators
import referencing
import referencing.exceptions

# Each is one keyword of the schema held against one value.
MAX_STEPS = 5_000
MAX_UNIQUE = 200
# Patterns may take years; what they would decide about is left to the server.
NOT_RUN = ("pattern", "patternProperties", "unevaluatedProperties", "format")

Schema = Mapping[str, Any]
# (validator, value of the keyword, instance, schema)
Keyword = Callable[[object, object, object, Schema], Iterable["Problem"] | None]


class Problem(Protocol):
    """One thing that does not fit, as the library tells it."""

    message: str
    validator: str
    validator_value: Any
    instance: Any
    schema: Any
    context: Sequence["Problem"]

    @property
    def absolute_path(self) -> Iterable[str | int]: ...


class Validator(Protocol):
    """A schema, ready to be held against something."""

    def iter_errors(self, instance: object) -> Iterable[Problem]: ...


class Draft(Protocol):
    """The library's validator for one draft of the specification."""

    VALIDATORS: Mapping[str, Keyword]

    def __call__(self, schema: Schema, *, registry: object) -> Validator: ...

    def check_schema(self, schema: Schema, format_checker: object) -> None: ...


class Unreadable(Exception):
    """The schema cannot be applied: it makes no sense, points elsewhere, or has no end."""


class TooManySteps(Exception):
    """Applying the schema takes longer than it is worth."""


NONSENSE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    TooManySteps,
    jsonschema.exceptions.UnknownType,
    referencing.exceptions.Unresolvable,
)
# Without a registry of its own the library would fetch what a schema refers to.
NOTHING_KNOWN = cast("object", referencing.Registry())  # pyright: ignore[reportUnknownArgumentType] - its own default
_steps: ContextVar[list[int]] = ContextVar("steps")


def problems(schema: Schema, arguments: Mapping[str, Any], most: int) -> list[Problem]:
    """What does not fit, at most so much of it; raises `Unreadable`."""
    left = _steps.set([MAX_STEPS])
    try:
        return list(islice(_careful(_draft(schema))(schema, registry=NOTHING_KNOWN).iter_errors(arguments), most))
    except NONSENSE:
        raise Unreadable from None
    finally:
        _steps.reset(left)


def is_sound(schema: Schema) -> bool:
    """Whether a schema is a schema."""
    try:
        _draft(schema).check_schema(schema, format_checker=None)
    except (jsonschema.exceptions.SchemaError, *NONSENSE):
        return False
    return True


def _draft(schema: Schema) -> Draft:
    found: object = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    return cast("Draft", found)


@cache
def _careful(draft: Draft) -> Draft:
    """The validator of a draft, with our own reading of what is dangerous in it."""
    keywords = draft.VALIDATORS
    ours: dict[str, Keyword] = {name: _silent for name in NOT_RUN if name in keywords}
    for name, wrapped in (("additionalProperties", _closed), ("uniqueItems", _short)):
        if name in keywords:
            ours[name] = wrapped(keywords[name])
    counted = {name: _counted(ours.get(name, keyword)) for name, keyword in keywords.items()}
    extended = jsonschema.validators.extend(draft, counted)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - the library has no types
    return cast("Draft", extended)


def _silent(_validator: object, _value: object, _instance: object, _schema: Schema) -> None:
    return None


def _closed(usual: Keyword) -> Keyword:
    """Which properties are additional would be for the patterns to say, where there are any."""

    def keyword(validator: object, value: object, instance: object, schema: Schema) -> Iterable[Problem] | None:
        return None if "patternProperties" in schema else usual(validator, value, instance, schema)

    return keyword


def _short(usual: Keyword) -> Keyword:
    """Each item may be held against each other one."""

    def keyword(validator: object, value: object, instance: object, schema: Schema) -> Iterable[Problem] | None:
        items = cast("list[object]", instance) if isinstance(instance, list) else []
        return None if len(items) > MAX_UNIQUE else usual(validator, value, cast("object", instance), schema)

    return keyword


def _counted(usual: Keyword) -> Keyword:
    def keyword(validator: object, value: object, instance: object, schema: Schema) -> Iterable[Problem] | None:
        left = _steps.get()
        left[0] -= 1
        if left[0] < 0:
            raise TooManySteps
        return usual(validator, value, instance, schema)

    return keyword
