"""Checks values against JSON schemas of foreign servers, without fetching anything and within a bound."""

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

# A short schema with references can take forever, and jsonschema-rs cannot be stopped.
UNBOUNDED_KEYWORDS = re.compile(rb"\$(?:ref|dynamicRef|recursiveRef)|unevaluated(?:Properties|Items)")
MAX_QUICK_SCHEMA = 32 * 1024
# Patterns run in linear time; a pattern that needs a large automaton or a lookahead does not run.
MAX_PATTERN_BYTES = 100_000


def compile_quick_check(schema: Mapping[str, Any], text: bytes) -> FitsSchema | None:
    """Return a check that takes bounded time, or None; `text` is the schema's keywords as they are spelt.

    The check returns False also if it is not sure.
    """
    if len(text) > MAX_QUICK_SCHEMA or UNBOUNDED_KEYWORDS.search(text):
        return None
    # Importing it takes 7 MB of memory, which only a process that calls tools should pay.
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
            # For example lone surrogates, and values that are nested too deep.
            return False

    return fits


# One step applies one keyword of the schema to one value.
MAX_STEPS = 5_000
MAX_UNIQUE = 200
# A pattern may take years; the server checks these keywords.
SKIPPED_KEYWORDS = ("pattern", "patternProperties", "unevaluatedProperties", "format")

Schema = Mapping[str, Any]
# (validator, value of the keyword, instance, schema)
CheckKeyword = Callable[[object, object, object, Schema], Iterable["SchemaViolation"] | None]


class SchemaViolation(Protocol):
    """One value that does not fit, as the library reports it."""

    message: str
    validator: str
    validator_value: Any
    instance: Any
    schema: Any
    context: Sequence["SchemaViolation"]

    @property
    def absolute_path(self) -> Iterable[str | int]: ...


class SchemaValidator(Protocol):
    """A compiled schema."""

    def iter_errors(self, instance: object) -> Iterable[SchemaViolation]: ...


class SchemaDraft(Protocol):
    """The library's validator for one draft of the specification."""

    VALIDATORS: Mapping[str, CheckKeyword]

    def __call__(self, schema: Schema, *, registry: object) -> SchemaValidator: ...

    def check_schema(self, schema: Schema, format_checker: object) -> None: ...


class UnusableSchema(Exception):
    """The schema cannot be applied: it is invalid, refers to another document, or has no end."""


class TooManySchemaSteps(Exception):
    """Applying the schema takes too many steps."""


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
# With its default registry, the library would fetch what a schema refers to.
EMPTY_REGISTRY = cast("object", referencing.Registry())  # pyright: ignore[reportUnknownArgumentType] - its own default
_steps: ContextVar[list[int]] = ContextVar("steps")


def find_violations(schema: Schema, arguments: Mapping[str, Any], most: int) -> list[SchemaViolation]:
    """The values that do not fit, at most `most`; raises `UnusableSchema`."""
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
    """Whether the schema is valid by its metaschema."""
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
    """The validator of a draft with the dangerous keywords restricted."""
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
    """Skip the keyword if the schema has patterns, because they would decide which properties are additional."""

    def keyword(validator: object, value: object, instance: object, schema: Schema) -> Iterable[SchemaViolation] | None:
        return None if "patternProperties" in schema else usual(validator, value, instance, schema)

    return keyword


def _restrict_unique(usual: CheckKeyword) -> CheckKeyword:
    """Skip the keyword for long lists, because it may compare each item with every other."""

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
