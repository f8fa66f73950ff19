"""Checks values against JSON schemas of foreign servers: fetches nothing, runs no pattern, and stops after a bound.

A JSON schema validator takes some 70 µs for a handful of arguments, these functions 3. They only ever say "it fits":
where they do not, or there is none for a schema, the validator is asked, which can also say why.
"""

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

FitsSchema = Callable[[Any], bool]

PLAIN_DEPTH = 8
PLAIN_DRAFTS = ("https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema")
# They say nothing about what fits; patterns of foreign schemas are not run at all.
IGNORED_KEYWORDS = frozenset(
    {
        "$comment",
        "$schema",
        "default",
        "deprecated",
        "description",
        "examples",
        "format",
        "pattern",
        "readOnly",
        "title",
        "writeOnly",
    }
)
OBJECT_KEYWORDS = frozenset({"properties", "required", "additionalProperties"})


class NotPlainSchema(Exception):
    """A schema, or a part of one, that needs a real validator."""


def compile_plain_schema(schema: Mapping[str, Any]) -> FitsSchema | None:
    """The function for a schema, if it is plain."""
    try:
        if str(schema.get("$schema", PLAIN_DRAFTS[0])).rstrip("#") not in PLAIN_DRAFTS:
            return None
        return _compile_schema(schema, 0)
    except NotPlainSchema:
        return None


def _compile_schema(schema: object, depth: int) -> FitsSchema:
    if not isinstance(schema, dict) or depth > PLAIN_DEPTH:
        raise NotPlainSchema
    found = cast("dict[str, Any]", schema)
    said = [keyword for keyword in found if keyword not in IGNORED_KEYWORDS and keyword not in OBJECT_KEYWORDS]
    if not PLAIN_KEYWORDS.keys() >= set(said):
        raise NotPlainSchema
    parts = [PLAIN_KEYWORDS[keyword](found[keyword], depth + 1) for keyword in said]
    if not OBJECT_KEYWORDS.isdisjoint(found):
        parts.append(_compile_object(found, depth + 1))
    return parts[0] if len(parts) == 1 else lambda value: all(part(value) for part in parts)


def _compile_object(schema: dict[str, Any], depth: int) -> FitsSchema:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict) or not _is_list_of(str, required):
        raise NotPlainSchema
    known = {name: _compile_schema(part, depth) for name, part in cast("dict[str, Any]", properties).items()}
    more: object = schema.get("additionalProperties", True)
    other: FitsSchema = (lambda _value: bool(more)) if isinstance(more, bool) else _compile_schema(more, depth)

    def fits(value: object) -> bool:
        if not isinstance(value, dict):
            return True
        given = cast("dict[str, Any]", value)
        return all(name in given for name in required) and all(known.get(name, other)(given[name]) for name in given)

    return fits


def _compile_type(value: object, _depth: int) -> FitsSchema:
    names = cast("list[str]", [value] if isinstance(value, str) else value)
    if not _is_list_of(str, names) or not TYPE_CHECKS.keys() >= set(names):
        raise NotPlainSchema
    tests = [TYPE_CHECKS[name] for name in names]
    return tests[0] if len(tests) == 1 else lambda given: any(test(given) for test in tests)


def _compile_enum(value: object, _depth: int) -> FitsSchema:
    # Of texts alone: whether 1, 1.0 and true are one value is a longer story.
    if not _is_list_of(str, value):
        raise NotPlainSchema
    allowed = frozenset(cast("list[str]", value))
    return lambda given: isinstance(given, str) and given in allowed


def _compile_any_of(value: object, depth: int) -> FitsSchema:
    if not _is_list_of(dict, value) or not value:
        raise NotPlainSchema
    forms = [_compile_schema(form, depth) for form in cast("list[object]", value)]
    return lambda given: any(form(given) for form in forms)


def _compile_items(value: object, depth: int) -> FitsSchema:
    fits = _compile_schema(value, depth)
    return lambda given: not isinstance(given, list) or all(fits(one) for one in cast("list[Any]", given))


def _compile_bound(
    kind: FitsSchema, measure: Callable[[Any], float], *, least: bool
) -> Callable[[object, int], FitsSchema]:
    def make(value: object, _depth: int) -> FitsSchema:
        if not _is_number(value):
            raise NotPlainSchema
        bound = cast("float", value)
        if least:
            return lambda given: not kind(given) or measure(given) >= bound
        return lambda given: not kind(given) or measure(given) <= bound

    return make


def _is_list_of(kind: type, value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, kind) for one in cast("list[object]", value))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


TYPE_CHECKS: Mapping[str, FitsSchema] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "null": lambda value: value is None,
    "number": _is_number,
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}
PLAIN_KEYWORDS: Mapping[str, Callable[[object, int], FitsSchema]] = {
    "anyOf": _compile_any_of,
    "enum": _compile_enum,
    "items": _compile_items,
    "maxItems": _compile_bound(TYPE_CHECKS["array"], len, least=False),
    "maxLength": _compile_bound(TYPE_CHECKS["string"], len, least=False),
    "maximum": _compile_bound(_is_number, float, least=False),
    "minItems": _compile_bound(TYPE_CHECKS["array"], len, least=True),
    "minLength": _compile_bound(TYPE_CHECKS["string"], len, least=True),
    "minimum": _compile_bound(_is_number, float, least=True),
    "type": _compile_type,
}

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
