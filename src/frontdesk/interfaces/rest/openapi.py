"""Describes the HTTP API as an OpenAPI document, from the declared operations."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode
from pydantic_core import to_jsonable_python

from frontdesk import __version__
from frontdesk.interfaces.rest.errors import DETAILED_ERROR_RESPONSES, ERROR_RESPONSES, Problem
from frontdesk.interfaces.rest.routing import RouteModels
from frontdesk.operations import Operation

SCHEMA_PATH = "#/components/schemas/"
JSON_TYPE = "application/json"
SECURITY_SCHEME = "HTTPBearer"
CREDENTIAL_HELP = "An API key (fd_… or zm_…), or a token of a configured issuer."
# These contain data, in which a key may have the name of a keyword.
DATA_KEYS = frozenset({"const", "enum", "example", "examples"})
PATH_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")

Json = dict[str, Any]
# A type in a description: the operation it is of, and the part of the operation that has it.
TypeKey = tuple[str, str]


def openapi_document(operations: Iterable[Operation], prefix: str) -> Json:
    """The description of all operations that the HTTP API offers, mounted at `prefix`."""
    offered = [RouteModels(one) for one in operations if one.rest is not None]
    schemas, definitions = TypeAdapter.json_schemas(
        [
            *(one for models in offered for one in _types(models)),
            (("", "problem"), "serialization", TypeAdapter(Problem)),
        ],
        ref_template=f"{SCHEMA_PATH}{{model}}",
    )
    known = cast("Mapping[str, Json]", definitions.get("$defs", {}))
    by_key = {key: _resolved(schema, known) if key[1] == "query" else schema for (key, _), schema in schemas.items()}
    paths: dict[str, Json] = {}
    for models in offered:
        path = PATH_PARAMETER.sub(r"{\1}", models.route.path)
        paths.setdefault(path, {})[models.route.method.lower()] = _describe(models, by_key)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Frontdesk", "version": __version__},
        "servers": [{"url": prefix}],
        "paths": paths,
        "components": {
            "schemas": _referenced(known, paths),
            "securitySchemes": {SECURITY_SCHEME: {"type": "http", "description": CREDENTIAL_HELP, "scheme": "bearer"}},
        },
    }


def _types(models: RouteModels) -> Iterator[tuple[TypeKey, JsonSchemaMode, TypeAdapter[Any]]]:
    name, route = models.operation.name, models.route
    yield (name, "query"), "validation", TypeAdapter(models.query)
    if models.body is not None:
        yield (name, "body"), "validation", TypeAdapter(models.body)
    if route.response is not None:
        yield (name, str(route.status)), "serialization", models.answer
    for status, doc in route.responses.items():
        if "model" in doc:
            yield (name, str(status)), "serialization", TypeAdapter(doc["model"])


def _resolved(schema: Mapping[str, Any], known: Mapping[str, Json]) -> Mapping[str, Any]:
    reference = str(schema.get("$ref", ""))
    return known[reference.removeprefix(SCHEMA_PATH)] if reference else schema


def _describe(models: RouteModels, schemas: Mapping[TypeKey, Mapping[str, Any]]) -> Json:
    operation, route = models.operation, models.route
    told: Json = {
        "summary": operation.summary,
        "operationId": route.name or operation.name,
        "security": [{SECURITY_SCHEME: [*operation.scopes, *filter(None, [operation.admin_scope])]}],
    }
    of_query = _query_parameters(schemas[operation.name, "query"])
    parameters = [*_path_parameters(route.path), *of_query, *route.header_parameters]
    if parameters:
        told["parameters"] = parameters
    if models.body is not None:
        told["requestBody"] = _body(models, schemas[operation.name, "body"])
    told["responses"] = _responses(models, schemas)
    return told


def _path_parameters(path: str) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "title": _title(name)}}
        for name in PATH_PARAMETER.findall(path)
    ]


def _title(name: str) -> str:
    return name.replace("_", " ").title()


def _query_parameters(schema: Mapping[str, Any]) -> list[Json]:
    required: Sequence[str] = schema.get("required", ())
    found: list[Json] = []
    for name, field in cast("Mapping[str, Json]", schema.get("properties", {})).items():
        shown = {key: value for key, value in field.items() if key != "default" or value is not None}
        if "$ref" not in shown:
            shown.setdefault("title", _title(name))
        about = {"description": shown["description"]} if "description" in shown else {}
        found.append({"name": name, "in": "query", "required": name in required, "schema": shown, **about})
    return found


def _body(models: RouteModels, schema: Mapping[str, Any]) -> Json:
    route = models.route
    content: Json = {"schema": schema if route.body_required else {"anyOf": [schema, {"type": "null"}]}}
    if route.body_example is not None:
        content["examples"] = {"example": {"value": to_jsonable_python(route.body_example)}}
    return {"content": {JSON_TYPE: content}, **({"required": True} if route.body_required else {})}


def _responses(models: RouteModels, schemas: Mapping[TypeKey, Mapping[str, Any]]) -> Json:
    name, route = models.operation.name, models.route
    told: Json = {str(route.status): {"description": "Successful Response"}}
    if route.response is not None:
        told[str(route.status)]["content"] = {JSON_TYPE: {"schema": schemas[name, str(route.status)]}}
    told |= {status: dict(doc) for status, doc in ERROR_RESPONSES.items()}
    if route.detailed_errors:
        told |= {status: dict(doc) for status, doc in DETAILED_ERROR_RESPONSES.items()}
    for status, doc in route.responses.items():
        own: Json = dict(to_jsonable_python({key: value for key, value in doc.items() if key != "model"}))
        # A route's own description of an error stands in the place of the general one.
        before = cast("Json", told[str(status)]) if status == route.status else {}
        content = _merge_content(before, own, schemas[name, str(status)] if "model" in doc else None)
        told[str(status)] = {**before, **own, **({"content": content} if content else {})}
    return told


def _merge_content(before: Json, own: Json, schema: Mapping[str, Any] | None) -> Json:
    """The content of a response: what is described already, with the examples and the model of its own description."""
    content: Json = {**before.get("content", {})}
    for media_type, told in own.get("content", {}).items():
        content[media_type] = {**content.get(media_type, {}), **told}
    if schema is not None:
        content[JSON_TYPE] = {**content.get(JSON_TYPE, {}), "schema": schema}
    return content


def _referenced(known: Mapping[str, Json], paths: object) -> Json:
    """The definitions that the paths refer to, directly or through others, by name."""
    found: set[str] = set()
    waiting: list[object] = [paths]
    while waiting:
        for name in _references(waiting.pop()):
            if name not in found:
                found.add(name)
                waiting.append(known[name])
    return {name: _without_null_defaults(known[name]) for name in sorted(found)}


def _without_null_defaults(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """The schema without defaults that are null, which every optional field has."""
    match value:
        case dict():
            fields = cast("Json", value)
            return {
                key: inner if key in DATA_KEYS else _without_null_defaults(inner)
                for key, inner in fields.items()
                if not (key == "default" and inner is None)
            }
        case list():
            return [_without_null_defaults(inner) for inner in cast("list[Any]", value)]
        case _:
            return value


def _references(value: object) -> Iterator[str]:
    match value:
        case dict():
            for key, inner in cast("Mapping[str, object]", value).items():
                if key == "$ref" and isinstance(inner, str) and inner.startswith(SCHEMA_PATH):
                    yield inner.removeprefix(SCHEMA_PATH)
                else:
                    yield from _references(inner)
        case list():
            for inner in cast("list[object]", value):
                yield from _references(inner)
        case _:
            pass
