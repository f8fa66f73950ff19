"""Checks values against JSON schemas of foreign servers: fetches nothing, and stops after a bound.

Two libraries do it. jsonschema-rs says within a microsecond that arguments fit. jsonschema, in Python, takes a hundred
times as long, but can be stopped on the way and says what does not fit. It is asked where the first does not say that
they fit, and for schemas that could keep the first one busy.
"""

import re
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

FitsSchema = Callable[[Mapping[str, Any]], bool]

# References can make a short schema take forever, and jsonschema-rs cannot be stopped.
UNBOUNDED_KEYWORDS = re.compile(rb"\$(?:ref|dynamicRef|recursiveRef)|unevaluated(?:Properties|Items)")
MAX_QUICK_SCHEMA = 32 * 1024
# Patterns run in linear time; those that would need a large automaton, or a look ahead, are not run.
MAX_PATTERN_BYTES = 100_000


def compile_quick_check(schema: Mapping[str, Any], text: bytes) -> FitsSchema | None:
    """Whether arguments fit, where that takes bounded time; `text` holds the schema's keywords as they are spelt.

    False also means that it is not sure.
    """
    if len(text) > MAX_QUICK_SCHEMA or UNBOUNDED_KEYWORDS.search(text):
        return None
    # 7 MB of memory that only those should pay who call tools.
    import jsonschema_rs  # noqa: PLC0415

    try:
        validator = jsonschema_rs.validator_for(
            cast("dict[str, Any]", schema),
            validate_formats=False,
            pattern_options=jsonschema_rs.RegexOptions(size_limit=MAX_PATTERN_BYTES, dfa_size_limit=MAX_PATTERN_BYTES),
            offline=True,
        )
    except (ValueError, jsonschema_rs.ReferencingError):
        return None

    def fits(arguments: Mapping[str, Any]) -> bool:
        try:
            return validator.is_valid(cast("dict[str, Any]", arguments))
        except ValueError:
            # Lone surrogates, say, and values that are nested too deep.
            return False

    return fits


# Each is one keyword of the schema held against one value.
MAX_STEPS = 5_000
MAX_UNIQUE = 200
# Patterns may take years; what they would decide about is left to the server.
SKIPPED_KEYWORDS = ("pattern", "patternProperties", "unevaluatedProperties", "format")

Schema = Mapping[str, Any]
# (validator, value of the keyword, instance, schema)
CheckKeyword = Callable[[object, object, object, Schema], Iterable["SchemaViolation"] | None]


class SchemaViolation(Protocol):
    """One thing that does not fit, as the library tells it."""

    message: str
    validator: str
    validator_value: Any
    instance: Any
    schema: Any
    context: Sequence["SchemaViolation"]

    @property
    def absolute_path(self) -> Iterable[str | int]: ...


class SchemaValidator(Protocol):
    """A schema, ready to be held against something."""

    def iter_errors(self, instance: object) -> Iterable[SchemaViolation]: ...


class SchemaDraft(Protocol):
    """The library's validator for one draft of the specification."""

    VALIDATORS: Mapping[str, CheckKeyword]

    def __call__(self, schema: Schema, *, registry: object) -> SchemaValidator: ...

    def check_schema(self, schema: Schema, format_checker: object) -> None: ...


class UnusableSchema(Exception):
    """The schema cannot be applied: it makes no sense, points elsewhere, or has no end."""


class TooManySchemaSteps(Exception):
    """Applying the schema takes longer than it is worth."""


SCHEMA_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    TooManySchemaSteps,
    jsonschema.exceptions.UnknownType,
    referencing.exceptions.Unresolvable,
)
# Without a registry of its own the library would fetch what a schema refers to.
EMPTY_REGISTRY = cast("object", referencing.Registry())  # pyright: ignore[reportUnknownArgumentType] - its own default
_steps: ContextVar[list[int]] = ContextVar("steps")


def find_violations(schema: Schema, arguments: Mapping[str, Any], most: int) -> list[SchemaViolation]:
    """What does not fit, at most so much of it; raises `UnusableSchema`."""
    left = _steps.set([MAX_STEPS])
    try:
        return list(
            islice(
                _restrict_draft(_draft_of_schema(schema))(schema, registry=EMPTY_REGISTRY).iter_errors(arguments), most
            )
        )
    except SCHEMA_ERRORS:
        raise UnusableSchema from None
    finally:
        _steps.reset(left)


def is_valid_schema(schema: Schema) -> bool:
    """Whether a schema is a schema."""
    try:
        _draft_of_schema(schema).check_schema(schema, format_checker=None)
    except (jsonschema.exceptions.SchemaError, *SCHEMA_ERRORS):
        return False
    return True


def _draft_of_schema(schema: Schema) -> SchemaDraft:
    found: object = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    return cast("SchemaDraft", found)


@cache
def _restrict_draft(draft: SchemaDraft) -> SchemaDraft:
    """The validator of a draft, with our own reading of what is dangerous in it."""
    keywords = draft.VALIDATORS
    ours: dict[str, CheckKeyword] = {name: _skip_keyword for name in SKIPPED_KEYWORDS if name in keywords}
    for name, wrapped in (("additionalProperties", _restrict_additional), ("uniqueItems", _restrict_unique)):
        if name in keywords:
            ours[name] = wrapped(keywords[name])
    counted = {name: _count_steps(ours.get(name, keyword)) for name, keyword in keywords.items()}
    extended = jsonschema.validators.extend(draft, counted)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - the library has no types
    return cast("SchemaDraft", extended)


def _skip_keyword(_validator: object, _value: object, _instance: object, _schema: Schema) -> None:
    return None


def _restrict_additional(usual: CheckKeyword) -> CheckKeyword:
    """Which properties are additional would be for the patterns to say, where there are any."""

    def keyword(validator: object, value: object, instance: object, schema: Schema) -> Iterable[SchemaViolation] | None:
        return None if "patternProperties" in schema else usual(validator, value, instance, schema)

    return keyword


def _restrict_unique(usual: CheckKeyword) -> CheckKeyword:
    """Each item may be held against each other one."""

    def keyword(validator: object, value: object, instance: object, schema: Schema) -> Iterable[SchemaViolation] | None:
        items = cast("list[object]", instance) if isinstance(instance, list) else []
        return None if len(items) > MAX_UNIQUE else usual(validator, value, cast("object", instance), schema)

    return keyword


def _count_steps(usual: CheckKeyword) -> CheckKeyword:
    def keyword(validator: object, value: object, instance: object, schema: Schema) -> Iterable[SchemaViolation] | None:
        left = _steps.get()
        left[0] -= 1
        if left[0] < 0:
            raise TooManySchemaSteps
        return usual(validator, value, instance, schema)

    return keyword
