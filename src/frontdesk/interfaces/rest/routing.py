"""Serves operations as routes of the HTTP API: read the request, run, and send the answer or the error."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Union, cast, get_args, get_origin

import structlog
from pydantic import BaseModel, TypeAdapter, ValidationError, create_model
from pydantic_core import to_json
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from frontdesk.app import App
from frontdesk.errors import FrontdeskError, InvalidArguments, RequestProblem
from frontdesk.identity.model import Caller, Credential, Signals
from frontdesk.interfaces.calls import run_call
from frontdesk.interfaces.http.context import Receive, RequestContext, Scope, Send, request_context
from frontdesk.interfaces.rest.errors import (
    BodyRefused,
    error_response,
    invalid_response,
    problem_response,
)
from frontdesk.operations import (
    Answer,
    BoundOperation,
    Call,
    EmptyQuery,
    IdentifyBy,
    Operation,
    RestAnswer,
    RestInput,
    RestRoute,
)

LOCAL_USER = "local"
# Methods whose requests have no body, so that all fields of a request come in the path and the query.
BODILESS = frozenset({"GET", "DELETE"})
LIST_TYPES = (list, tuple, set, frozenset, Sequence, Collection)
NO_BODY = object()
INVALID_REQUEST = "Validation failed"

log = structlog.get_logger("frontdesk.rest")


def rest_route(operation: Operation) -> RestRoute:
    """How the HTTP API offers an operation that it does offer."""
    assert operation.rest is not None, operation.name  # noqa: S101 - the table is filtered by it
    return operation.rest


@dataclass(frozen=True, eq=False)
class RouteModels:
    """The models of a route: its query, its body, and the type of its answer. Computed when they are first needed."""

    operation: Operation

    @property
    def route(self) -> RestRoute:
        return rest_route(self.operation)

    @cached_property
    def path_names(self) -> frozenset[str]:
        return frozenset(part[1:-1].split(":")[0] for part in self.route.path.split("/") if part.startswith("{"))

    @cached_property
    def query(self) -> type[BaseModel]:
        """The parameters of the query. A route without `run` or a body takes them from the request."""
        if self.route.run is not None or self.route.body is not None or self.route.method not in BODILESS:
            return self.route.query
        # Parameters that no route knows were always ignored.
        return _without_fields(self.operation.request, self.path_names, extra="ignore")

    @cached_property
    def body(self) -> type[BaseModel] | None:
        if self.route.run is not None or self.route.body is not None or self.route.method in BODILESS:
            return self.route.body
        rest = _without_fields(self.operation.request, self.path_names)
        return rest if rest.model_fields else None

    @cached_property
    def list_parameters(self) -> Mapping[str, bool]:
        """The parameters of the query by their names, and whether each may be repeated."""
        return {one.alias or name: _takes_list(one.annotation) for name, one in self.query.model_fields.items()}

    @cached_property
    def answer(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.route.response)


def _without_fields(
    model: type[BaseModel], names: Collection[str], extra: Literal["ignore"] | None = None
) -> type[BaseModel]:
    """The model without the fields that come in the path; with `extra`, unknown fields are ignored."""
    if not names and extra is None:
        return model
    kept: dict[str, Any] = {
        name: (one.annotation, one) for name, one in model.model_fields.items() if name not in names
    }
    config = model.model_config.copy()
    if extra is not None:
        config["extra"] = extra
    return create_model(model.__name__, __config__=config, __doc__=model.__doc__, **kept)


def _takes_list(annotation: object) -> bool:
    origin = get_origin(annotation)
    if origin in LIST_TYPES:
        return True
    if origin is Union or type(annotation).__name__ == "UnionType":
        return any(_takes_list(one) for one in get_args(annotation))
    # `Annotated[list[str], …]` inside a union keeps its metadata.
    return hasattr(annotation, "__metadata__") and _takes_list(get_args(annotation)[0])


class MethodRoute(Route):
    """A route for exactly one method: Starlette would add HEAD to GET."""

    def __init__(self, path: str, endpoint: "OperationEndpoint") -> None:
        super().__init__(path, endpoint, methods=[endpoint.route.method], name=endpoint.operation.name)
        self.methods = {endpoint.route.method}


def operation_routes(app: App, operations: Sequence[BoundOperation], prefix: str) -> list[Route]:
    """The routes of all operations that the HTTP API offers; `prefix` is where they are mounted.

    The first route that matches is taken, so a fixed part of a path comes before a parameter in its place.
    """
    offered = [OperationEndpoint(app, bound, prefix) for bound in operations if bound.operation.rest is not None]
    routes: list[Route] = []
    for endpoint in sorted(offered, key=lambda one: _specificity(one.route.path)):
        routes.append(MethodRoute(endpoint.route.path, endpoint))
        if endpoint.route.slash_too:
            routes.append(MethodRoute(f"{endpoint.route.path}/", endpoint))
    return routes


def _specificity(path: str) -> tuple[int, ...]:
    """A sort key by the parts of a path: fixed, a parameter, a parameter that takes several parts."""
    parts = path.split("/")
    kinds = [0 if not part.startswith("{") else 2 if ":path" in part else 1 for part in parts]
    return (*kinds, 3) if kinds[-1] == 2 else tuple(kinds)


@dataclass(eq=False)
class OperationEndpoint:
    """The ASGI application behind one route."""

    app: App
    bound: BoundOperation
    prefix: str
    models: RouteModels = field(init=False)

    def __post_init__(self) -> None:
        self.models = RouteModels(self.bound.operation)

    @property
    def operation(self) -> Operation:
        return self.bound.operation

    @property
    def route(self) -> RestRoute:
        return rest_route(self.bound.operation)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        context = request_context(request.scope)
        action = f"{self.route.method} {self.prefix}{self.route.path}"
        signals = Signals(context.request_id, context.headers.get("x-agent-id"), credential=context.credential)

        async def identify(_signals: Signals) -> Caller:
            return await identify_request(self.app, request, context, self.route.identify_by)

        async def work(caller: Caller) -> Response:
            self.bound.check(caller)
            return self._respond(await self._run(Call(caller, context.token), request))

        try:
            return await run_call(self.app, "rest", action, signals, work, identify)
        except InvalidArguments as error:
            response = invalid_response(error)
        except FrontdeskError as error:
            response = error_response(error)
        except Exception:
            log.exception("call_failed", action=action, request_id=context.request_id)
            response = problem_response(500, "Internal server error")
        return _with_success_field(response) if self.route.success_field else response

    async def _run(self, call: Call, request: Request) -> object:
        given = await self._read(request)
        if self.route.run is not None:
            return await self.route.run(self.bound.service, call, given)
        fields = {**_given_fields(given.query), **_given_fields(given.body), **given.path}
        problems: list[RequestProblem] = []
        asked = _validate("params", self.operation.request, fields, problems)
        if problems:
            raise InvalidArguments(INVALID_REQUEST, problems)
        answer = await self.operation.run(self.bound.service, call, asked)
        return answer.data if isinstance(answer, Answer) else answer

    async def _read(self, request: Request) -> RestInput[BaseModel, BaseModel | None]:
        """Validate the query and the body; all problems of both are reported together."""
        problems: list[RequestProblem] = []
        query = _validate("query", self.models.query, self._query_values(request.query_params), problems)
        body = None
        if self.models.body is not None:
            value = await read_json(request)
            if value is not NO_BODY and not (value is None and not self.route.body_required):
                body = _validate("body", self.models.body, value, problems)
            elif self.route.body_required:
                problems.append(RequestProblem("body", (), "Field required"))
        if problems:
            raise InvalidArguments(INVALID_REQUEST, problems)
        return RestInput(request.path_params, query or EmptyQuery(), body, request_context(request.scope).headers)

    def _query_values(self, given: QueryParams) -> dict[str, Any]:
        known = self.models.list_parameters
        values: dict[str, Any] = {
            name: given.getlist(name) if is_list else given[name] for name, is_list in known.items() if name in given
        }
        if self.models.query.model_config.get("extra") == "forbid":
            values |= {name: given[name] for name in given if name not in known}
        return values

    def _respond(self, value: object) -> Response:
        if isinstance(value, Response):
            return value
        status, headers = self.route.status, dict[str, str]()
        if isinstance(value, RestAnswer):
            value, status, headers = value.value, value.status or status, dict(value.headers)
        if self.route.response is None:
            content = to_json(value)
        else:
            content = self.models.answer.dump_json(value, by_alias=True, exclude_none=self.route.omits_nulls)
        return Response(content, status, headers, media_type="application/json")


def _given_fields(model: BaseModel | None) -> dict[str, Any]:
    return {} if model is None else {name: getattr(model, name) for name in model.model_fields_set}


def _validate(place: str, model: type[BaseModel], value: object, problems: list[RequestProblem]) -> BaseModel | None:
    try:
        # `from_attributes` changes nothing for JSON but the message for what is no object, which names no class then.
        return model.model_validate(value, from_attributes=True)
    except ValidationError as error:
        problems += [RequestProblem(place, one["loc"], one["msg"]) for one in error.errors(include_url=False)]
        return None


async def read_json(request: Request) -> object:
    """The body as JSON. A body of another media type is returned as bytes, which no model accepts."""
    body = await _read_body(request)
    if not body:
        return NO_BODY
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    kind, _, subtype = media_type.partition("/")
    if kind != "application" or not (subtype == "json" or subtype.endswith("+json")):
        return body
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidArguments("The body is not valid JSON") from error


async def _read_body(request: Request) -> bytes:
    try:
        return await request.body()
    except ClientDisconnect as error:
        raise BodyRefused(400, "The connection was closed before the whole body had arrived") from error


def _with_success_field(response: Response) -> Response:
    """The response to an error with `success: false`. Other refusals, such as a 401, keep the format of all routes."""
    if response.status_code not in (400, 403, 404, 409):
        return response
    body = {**json.loads(bytes(response.body)), "success": False}
    kept = {name: value for name, value in response.headers.items() if name not in ("content-length", "content-type")}
    return Response(to_json(body), response.status_code, kept, media_type="application/json")


async def identify_request(app: App, request: Request, context: RequestContext, by: IdentifyBy) -> Caller:
    """Identify the caller of a request."""
    if by is IdentifyBy.PERSON:
        return await identify_person(app, context)
    parameter = await _body_agent_id(request) if by is IdentifyBy.BODY else None
    return await app.identity.identify(
        Signals(
            context.request_id,
            header=context.headers.get("x-agent-id"),
            parameter=parameter,
            credential=context.credential,
            forwarded=context.forwarded,
        )
    )


async def identify_person(app: App, context: RequestContext) -> Caller:
    """The person who calls, after their rate limit; without a credential the middleware admits only local callers."""
    credential = context.credential or Credential(LOCAL_USER, user_id=LOCAL_USER)
    # People talk with agents here, and do not act as one: so, as for a stranger, no default agent applies.
    signals = Signals(context.request_id, credential=replace(credential, agent_id=None), forwarded=True)
    return replace(await app.identity.identify(signals), verified=context.credential is not None)


async def _body_agent_id(request: Request) -> object:
    """The agent that the body names; an invalid body is reported later."""
    if request.method == "GET":
        return None
    try:
        body = json.loads(await _read_body(request))
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", body).get("agent_id") if isinstance(body, dict) else None
