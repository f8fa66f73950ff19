"""Reads the tools of a manifest: schemas, answers, states and placeholders."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, cast

import jsonschema
import jsonschema.exceptions
import jsonschema.validators
import referencing.exceptions

from frontdesk.agent365.manifest.json_fields import (
    JsonFields,
    PlacedValue,
    describe_type,
    place_below,
    read_fields_in_any_case,
    warn_of_unknown_keys,
)
from frontdesk.agent365.manifest.model import (
    ANY_OBJECT_SCHEMA,
    FIRST_STATE,
    DeclaredTool,
    MockAnswer,
    ProblemList,
    quote_name,
)
from frontdesk.text import one_line

PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")
# With any of these keys a schema accepts arguments that its properties do not name.
OPEN_SCHEMA_KEYS = (
    "$ref",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "patternProperties",
    "dependentSchemas",
    "additionalProperties",
)


def placeholders(template: str) -> tuple[str, ...]:
    """The names of the placeholders in a template, each once, in order."""
    return tuple(dict.fromkeys(found[1].strip() for found in PLACEHOLDER.finditer(template)))


def unknown_placeholders(template: str, schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Placeholders that no argument can fill, as far as the schema shows its arguments."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or any(schema.get(word) for word in OPEN_SCHEMA_KEYS):
        return ()
    names = {name.strip().casefold() for name in cast("dict[str, object]", properties)}
    return tuple(name for name in placeholders(template) if name.casefold() not in names)


LONGEST_SCHEMA = 256 * 1024
LONGEST_REASON = 160
# When a changed file is read again, most of its schemas are the same.
CACHED_SCHEMAS = 4096
LONGEST_CACHED_SCHEMA = 4096
SCHEMA_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    jsonschema.exceptions.UnknownType,
    referencing.exceptions.Unresolvable,
)


class DraftValidator(Protocol):
    """The library's validator for one draft of the specification."""

    def check_schema(self, schema: object, format_checker: object) -> None: ...


def read_input_schema(fields: JsonFields, notes: ProblemList) -> Mapping[str, Any]:
    """The schema that a tool declares; one that accepts anything where the declared schema is not valid."""
    schema = fields.object("inputSchema", notes)
    if schema is None:
        return ANY_OBJECT_SCHEMA
    where = fields.place_of("inputSchema")
    wrong = _schema_problem(schema)
    if wrong is not None:
        notes.error(where, f"{wrong}; until then the tool takes anything")
        return ANY_OBJECT_SCHEMA
    if "type" not in schema:
        notes.warn(where, 'does not say "type": "object", which MCP clients want; add it')
    _check_required(schema, where, notes)
    return schema


def _schema_problem(schema: Mapping[str, Any]) -> str | None:
    kind = schema.get("type", "object")
    if kind != "object":
        return f'is for {quote_name(str(kind))} where a tool takes named arguments; write "type": "object"'
    text = json.dumps(schema)
    if len(text) > LONGEST_SCHEMA:
        return f"is larger than {LONGEST_SCHEMA // 1024} KiB; leave out what callers need not know"
    return _find_schema_problem(text) if len(text) > LONGEST_CACHED_SCHEMA else _cached_schema_problem(text)


def _find_schema_problem(text: str) -> str | None:
    schema: dict[str, Any] = json.loads(text)
    try:
        chosen: object = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        cast("DraftValidator", chosen).check_schema(schema, format_checker=None)
    except jsonschema.exceptions.SchemaError as error:
        return f"is no JSON Schema at {error.json_path}: {one_line(error.message, LONGEST_REASON)}; mend that"
    except SCHEMA_ERRORS:
        return "is no JSON Schema that could be checked; write a simpler one"
    return None


_cached_schema_problem = lru_cache(CACHED_SCHEMAS)(_find_schema_problem)


def _check_required(schema: Mapping[str, Any], where: str, notes: ProblemList) -> None:
    # In an old draft this word has another meaning.
    required, properties = schema.get("required"), schema.get("properties")
    if not isinstance(required, list) or not isinstance(properties, dict):
        return
    known = cast("dict[str, object]", properties)
    for name in cast("list[str]", required):
        if name not in known:
            near = notes.did_you_mean(name, known)
            notes.warn(f"{where}.required", f"asks for {quote_name(name)}, which no property describes{near}")


ANSWER_KEYS = ("in", "responseTemplate", "next", "isError")


@dataclass(frozen=True, slots=True)
class PlacedAnswer:
    """An answer and its place."""

    where: str
    answer: MockAnswer


def read_answers(fields: JsonFields, schema: Mapping[str, Any], notes: ProblemList) -> tuple[PlacedAnswer, ...]:
    """The answers for a state first, in their order, then the answer for all other states."""
    template = fields.text("responseTemplate", notes)
    if template is not None:
        _check_template(template, schema, fields.place_of("responseTemplate"), notes)
    read: list[PlacedAnswer] = []
    for number, value in enumerate(fields.items("states", notes) or ()):
        where = f"{fields.place_of('states')}[{number}]"
        if isinstance(value, dict):
            state = read_fields_in_any_case(cast("dict[str, object]", value), where, ANSWER_KEYS, notes)
            read.append(PlacedAnswer(where, _read_answer(state, template, schema, notes)))
        else:
            notes.error(where, f'must be an object like {{"in": "draft"}}, not {describe_type(value)}, and is left out')
    _check_order(read, notes)
    rest = () if template is None else (PlacedAnswer(fields.place_of("responseTemplate"), MockAnswer(template)),)
    return (*read, *rest)


def check_answer_states(all_answers: Sequence[PlacedAnswer], notes: ProblemList) -> None:
    """Warn of a server's states that cannot be reached, and of states in which no tool has an answer."""
    spoken_of = {one.answer.state for one in all_answers if one.answer.state is not None} | {FIRST_STATE}
    # If an answer is for every state, a state without its own answers may be the end, or its name is misspelt.
    has_rest = any(one.answer.state is None for one in all_answers)
    reached = _reachable_states([one.answer for one in all_answers])
    for one in all_answers:
        state, following = one.answer.state, one.answer.next_state
        if state is not None and state not in reached:
            known = notes.did_you_mean(state, reached)
            notes.warn(f"{one.where}.in", f"nothing leads to {quote_name(state)} from '{FIRST_STATE}'{known}")
        if following is not None and following not in spoken_of:
            known = notes.did_you_mean(following, spoken_of)
            if known or not has_rest:
                notes.warn(f"{one.where}.next", f"no tool of the server speaks of {quote_name(following)}{known}")


def _reachable_states(given: Sequence[MockAnswer]) -> set[str]:
    """The states that a server can reach from the first one."""
    ways: dict[str | None, list[str]] = {}
    for one in given:
        if one.next_state is not None:
            ways.setdefault(one.state, []).append(one.next_state)
    # An answer for any state also counts in the first state.
    reached, ahead = {FIRST_STATE}, [FIRST_STATE, *ways.get(None, ())]
    while ahead:
        state = ahead.pop()
        ahead += [following for following in ways.get(state, ()) if following not in reached]
        reached |= {state, *ways.get(state, ())}
    return reached


def _read_answer(
    fields: JsonFields, otherwise: str | None, schema: Mapping[str, Any], notes: ProblemList
) -> MockAnswer:
    warn_of_unknown_keys(fields, ANSWER_KEYS, notes)
    template = fields.text("responseTemplate", notes)
    if template is not None:
        _check_template(template, schema, fields.place_of("responseTemplate"), notes)
    elif otherwise is None:
        notes.warn(fields.where, "has no responseTemplate, so that its answer is empty; say what it is")
    said = otherwise or "" if template is None else template
    failed = fields.flag("isError", notes) or False
    return MockAnswer(said, _read_state(fields, "in", notes), _read_state(fields, "next", notes), failed)


def _read_state(fields: JsonFields, key: str, notes: ProblemList) -> str | None:
    state = fields.text(key, notes)
    if state is not None and not state.strip():
        notes.error(fields.place_of(key), "is blank, and left out; name a state")
        return None
    return state


def _check_order(read: Sequence[PlacedAnswer], notes: ProblemList) -> None:
    """Warn of answers that are never given, since the first answer that fits counts."""
    taken: set[str | None] = set()
    for one in read:
        if one.answer.state in taken or None in taken:
            notes.warn(one.where, "is never given: an answer before it is for the same state; keep one")
        taken.add(one.answer.state)


def _check_template(template: str, schema: Mapping[str, Any], where: str, notes: ProblemList) -> None:
    for name in unknown_placeholders(template, schema):
        known = notes.did_you_mean(name, tuple(schema["properties"]))
        notes.warn(where, f"{quote_name('{{' + name + '}}')} is no argument of the tool{known}")


TOOL_KEYS = (
    "name",
    "description",
    "inputSchema",
    "responseTemplate",
    "delayMs",
    "errorRate",
    "statusCode",
    "enabled",
    "states",
)
# Other fields that MCP servers list for a tool; a listing that was saved unchanged has them.
IGNORED_TOOL_KEYS = ("title", "annotations", "outputSchema", "icons", "_meta", "execution")
# The names that MCP clients and models accept.
TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
LONGEST_DELAY = 60_000


@dataclass(frozen=True, slots=True)
class RawTool:
    """A tool from one file; it may consist of only a name."""

    name: str
    fields: JsonFields
    only_named: bool = False


def read_raw_tools(items: Sequence[object], where: str, notes: ProblemList) -> Mapping[str, RawTool]:
    """The tools of one list, by name, without those that have no name or a repeated one."""
    found: dict[str, RawTool] = {}
    for number, item in enumerate(items):
        place = f"{where}[{number}]"
        raw = _read_raw_tool(item, place, notes)
        if raw is None:
            continue
        if raw.name in found:
            notes.error(place, f"{quote_name(raw.name)} is declared twice, and the first one counts; keep one")
        else:
            found[raw.name] = raw
    return found


def read_tools(
    declared: Mapping[str, RawTool], mocked: Mapping[str, RawTool], notes: ProblemList
) -> tuple[DeclaredTool, ...]:
    """The tools of a server, from the manifest and from its mock file; of two values, the manifest's counts."""
    both = {name: _merge_raw_tools(raw, mocked[name], notes) for name, raw in declared.items() if name in mocked}
    read = [_read_tool(raw, notes) for raw in {**declared, **mocked, **both}.values()]
    check_answer_states([one for _, placed in read for one in placed], notes)
    return tuple(tool for tool, _ in read)


def _read_raw_tool(item: object, where: str, notes: ProblemList) -> RawTool | None:
    if isinstance(item, str):
        found = JsonFields(where, {"name": PlacedValue(where, item)})
    elif isinstance(item, dict):
        found = read_fields_in_any_case(cast("dict[str, object]", item), where, (*TOOL_KEYS, *IGNORED_TOOL_KEYS), notes)
        warn_of_unknown_keys(found, (*TOOL_KEYS, *IGNORED_TOOL_KEYS), notes)
    else:
        notes.error(where, f"must be a tool's name or an object, not {describe_type(item)}, and is left out")
        return None
    name = found.text("name", notes)
    if name is None or not name.strip():
        notes.error(found.place_of("name"), "is missing or blank, and the tool is left out; name the tool")
        return None
    if not TOOL_NAME.fullmatch(name):
        notes.error(
            found.place_of("name"),
            f"{quote_name(name)} is refused by MCP clients; keep to letters, digits, _, - and ., 128 at most",
        )
    return RawTool(name, found, only_named=isinstance(item, str))


def _merge_raw_tools(declared: RawTool, mocked: RawTool, notes: ProblemList) -> RawTool:
    ours, theirs = declared.fields.values, mocked.fields.values
    for key in ours.keys() & theirs.keys():
        if ours[key].value != theirs[key].value:
            notes.warn(theirs[key].where, f"is not what {ours[key].where} says, which counts; make them agree")
    said = JsonFields(mocked.fields.where if declared.only_named else declared.fields.where, {**theirs, **ours})
    return RawTool(declared.name, said, declared.only_named and mocked.only_named)


def _read_tool(raw: RawTool, notes: ProblemList) -> tuple[DeclaredTool, tuple[PlacedAnswer, ...]]:
    found = raw.fields
    description = found.text("description", notes) or ""
    if not description.strip() and not raw.only_named:
        notes.warn(
            place_below(found.where, "description"), "is empty, and agents choose tools by it; say what the tool does"
        )
    schema = read_input_schema(found, notes)
    placed = read_answers(found, schema, notes)
    enabled = found.flag("enabled", notes)
    status = found.integer("statusCode", 200, 599, notes)
    tool = DeclaredTool(
        raw.name,
        description,
        schema,
        tuple(one.answer for one in placed),
        found.integer("delayMs", 0, LONGEST_DELAY, notes) or 0,
        float(found.number("errorRate", 0, 1, notes) or 0),
        200 if status is None else status,
        True if enabled is None else enabled,
    )
    return tool, placed
