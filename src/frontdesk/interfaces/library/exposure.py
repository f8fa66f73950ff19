"""Decides how the library offers each operation: its name and group, its parameters, and the type of its answer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from typing import Any, Final, Protocol, cast, get_args

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from frontdesk.app import CORE_OPERATIONS
from frontdesk.interfaces.rest.routing import RouteModels
from frontdesk.operation_table import OPERATIONS
from frontdesk.operations import ErrorFormat, IdentifyBy, McpTool, Operation


class Unset(Enum):
    """Stands for a parameter that is left out, where None means that a value is removed."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET


class CallTransport(Protocol):
    """Runs the methods of the library: in this process, or on a server."""

    async def call(self, name: str, arguments: Mapping[str, object]) -> Any:  # noqa: ANN401 - the type of the method's answer
        """The answer of the method with this name. Arguments with their default value count as left out."""
        ...


# The groups of operations on a person's records, by the beginning of their scope.
RECORD_GROUPS = (
    ("tasks.time", "time"),
    ("tasks.", "tasks"),
    ("ai_tasks.", "work"),
    ("memories.", "memories"),
    ("activities.", "activities"),
    ("timeline.", "timeline"),
    ("categories.", "categories"),
)
OTHER_RECORDS = "person"
GROUP_OF_SERVICE = {"identity": "keys"}
ROOT_SERVICE = ""
UPDATING_METHODS = frozenset({"PUT", "PATCH"})
# How the descriptions of fields begin that have no effect.
FOR_OLDER_CLIENTS = "Accepted "


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a method. `alias` is its name in JSON.

    `loose`: the field takes values of any type, so that its type and default are those of its JSON `schema`.
    `removable`: None removes a value, so that leaving the parameter out is something else.
    """

    name: str
    alias: str
    field: FieldInfo
    schema: Mapping[str, Any]
    loose: bool
    removable: bool

    @property
    def description(self) -> str:
        return self.field.description or str(self.schema.get("description", ""))

    @property
    def required(self) -> bool:
        return self.field.is_required()

    @property
    def default(self) -> Any:  # noqa: ANN401 - of the type of the parameter
        if self.removable:
            return UNSET
        if self.loose:
            return self.schema.get("default", self.field.get_default(call_default_factory=True))
        return self.field.get_default(call_default_factory=True, validated_data={})

    def is_left_out(self, value: object) -> bool:
        if self.required:
            return False
        default = self.default
        if value is None and isinstance(default, dict):
            return True
        return value is default or (type(value) is type(default) and value == default)


class LibraryMethod:
    """An operation as a method of the library.

    It is the operation itself where an interface offers it unchanged: the HTTP API, whose errors have statuses, or else
    MCP. Otherwise it is the operation as the HTTP API offers it.
    """

    def __init__(self, operation: Operation, service: str) -> None:
        self.operation = operation
        self.service = service
        self.tool, self.route = _exposure(operation)

    @property
    def name(self) -> str:
        # The names of PromptYoSelf's tools repeat its own name.
        own = self.tool is not None and self.tool.error_format is not ErrorFormat.ANSWER
        return (self.tool.name if own and self.tool is not None else "") or self.operation.name

    @property
    def group(self) -> str:
        """The group of methods that it belongs to; empty for those of the desk itself."""
        if self.service != "memory":
            return GROUP_OF_SERVICE.get(self.service, self.service)
        scopes = self.operation.scopes
        if len(scopes) != 1:
            return OTHER_RECORDS
        return next((group for start, group in RECORD_GROUPS if scopes[0].startswith(start)), OTHER_RECORDS)

    @property
    def offered(self) -> bool:
        return self.tool is not None or self.route is not None

    @property
    def for_person_alone(self) -> bool:
        """Whether the agent that calls does not count."""
        return self.route is not None and self.route.route.identify_by is IdentifyBy.PERSON

    @property
    def has_own_route(self) -> bool:
        """Whether the route has a contract of its own, and takes a `RestInput`."""
        return self.route is not None and self.route.route.run is not None

    @property
    def request(self) -> type[BaseModel]:
        return (self.tool and self.tool.request) or self.operation.request

    @property
    def response(self) -> Any:  # noqa: ANN401 - a type, which may be a union
        return self.tool.response if self.tool is not None else self.route.route.response if self.route else None

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.response)

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters by name, without those that only repeat who calls, or are there for older clients."""
        repeated = self._caller_field
        return {
            one.name: one
            for one in self._all_parameters()
            if one.required or not (one.name == repeated or one.description.startswith(FOR_OLDER_CLIENTS))
        }

    @property
    def _caller_field(self) -> str | None:
        by = self.route.route.identify_by if self.route is not None else None
        return {IdentifyBy.BODY: "agent_id", IdentifyBy.PERSON: "user_id"}.get(by) if by is not None else None

    def _all_parameters(self) -> Iterator[Parameter]:
        if self.route is None or not self.has_own_route:
            yield from self._parameters_of(self.request)
            return
        for name in sorted(self.route.path_names):
            yield Parameter(name, name, FieldInfo(annotation=str), {}, loose=False, removable=False)
        for model in (self.route.body, self.route.query):
            if model is not None:
                yield from self._parameters_of(model)

    def _parameters_of(self, model: type[BaseModel]) -> Iterator[Parameter]:
        # Tools take null as not given: models send it for what they have no value for.
        updates = self.route is not None and self.route.route.method in UPDATING_METHODS
        schemas = model.model_json_schema().get("properties", {})
        for name, field in model.model_fields.items():
            alias = field.alias or name
            # A field of these types takes anything, and only its schema says what it is for.
            loose = field.annotation is object or cast("object", field.annotation) is Any
            optional = not field.is_required() and field.default is None
            removable = updates and optional and (loose or takes_none(field.annotation))
            yield Parameter(name, alias, field, schemas.get(alias, {}), loose=loose, removable=removable)

    def given(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """The arguments that are not left out, by their names in JSON."""
        parameters = self.parameters
        return {
            parameters[name].alias: value
            for name, value in arguments.items()
            if not parameters[name].is_left_out(value)
        }


def takes_none(annotation: object) -> bool:
    return annotation is None or annotation is type(None) or any(takes_none(one) for one in get_args(annotation))


def _exposure(operation: Operation) -> tuple[McpTool | None, RouteModels | None]:
    """The tool or the route that the library's method is like; neither where no answer has a type."""
    tool, route = operation.mcp, operation.rest
    has_route = route is not None and route.response is not None
    if has_route and route is not None and route.run is None:
        return None, RouteModels(operation)
    if tool is not None and tool.response is not None and tool.run is None and tool.request is None:
        return tool, None
    return None, RouteModels(operation) if has_route else None


@cache
def library_methods() -> Mapping[str, LibraryMethod]:
    """Every method by its name."""
    own = [LibraryMethod(one, ROOT_SERVICE) for one in CORE_OPERATIONS]
    every = [*own, *(LibraryMethod(one, service) for service, some in OPERATIONS.items() for one in some)]
    offered = [method for method in every if method.offered]
    found = {method.name: method for method in offered}
    assert len(found) == len(offered), "two methods of the library have one name"  # noqa: S101 - names of operations differ
    return found
