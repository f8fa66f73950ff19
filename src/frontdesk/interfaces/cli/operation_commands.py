"""Offers declared operations as commands: the fields of the request are the options."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from cyclopts import App as Command
from cyclopts import Parameter
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from frontdesk.app import CORE_OPERATIONS, App
from frontdesk.errors import Invalid
from frontdesk.identity.keys import LOCAL_USER
from frontdesk.identity.model import Caller, Signals
from frontdesk.interfaces.app_runner import local_caller, run_with_app
from frontdesk.interfaces.calls import run_call
from frontdesk.interfaces.cli.output import dump_json, printable_text
from frontdesk.llm.tools import describe_validation_errors
from frontdesk.operation_table import OPERATIONS
from frontdesk.operations import Answer, BoundOperation, Call, CommandLine, Effect, Operation, Requires

PLAIN_TYPES: tuple[object, ...] = (str, int, float, bool)
# Options that every command of an operation has, with their help.
AGENT_HELP = "The agent that calls."
USER_HELP = "The person that it is for."
JSON_HELP = "Print one JSON object."


def add_operation_commands(root: Command, operations: Sequence[Operation] | None = None) -> None:
    """Add a command for each operation that declares one, to the groups that its words name."""
    for operation in all_operations() if operations is None else operations:
        if operation.command is None:
            continue
        *groups, name = operation.command.words.split()
        at = root
        for group in groups:
            if group not in at:
                at.command(Command(name=group))
            at = at[group]
        at.command(make_command(operation, operation.command), name=name)


def all_operations() -> list[Operation]:
    return [*CORE_OPERATIONS, *(one for every in OPERATIONS.values() for one in every)]


def make_command(operation: Operation, command: CommandLine) -> Callable[..., None]:
    """The function of a command, whose parameters are the fields of the request."""
    model = command.request or operation.request

    def run(*values: object, **options: object) -> None:
        given = dict(zip(command.positional, values, strict=False)) | options
        user, agent, as_json = given.pop("user", None), given.pop("agent", None), given.pop("as_json", False)
        fields = {name: _parse(value) for name, value in given.items() if value is not None}
        caller = local_caller(agent=agent or None, user=user or None)  # pyright: ignore[reportArgumentType]
        try:
            request = model.model_validate(fields)
        except ValidationError as error:
            raise Invalid(f"That does not fit: {describe_validation_errors(error)}") from error
        answer = run_with_app(lambda app: _run(app, operation, command, caller, request), tools=command.tools)
        print(dump_json(_data(answer)) if as_json else printable_text(_text(answer)))

    run.__name__ = operation.name
    run.__doc__ = f"{operation.summary}."
    run.__signature__ = _signature(operation, command, model)
    return run


async def _run(app: App, operation: Operation, command: CommandLine, caller: Caller, request: BaseModel) -> object:
    bound = next(one for one in app.operations() if one.operation is operation)

    async def work(_caller: Caller) -> object:
        return await _work(bound, command, caller, request)

    if operation.effect is Effect.READS:
        return await work(caller)

    async def identify(_signals: Signals) -> Caller:
        return caller

    return await run_call(app, "cli", command.words, Signals(caller.request_id), work, identify)


async def _work(bound: BoundOperation, command: CommandLine, caller: Caller, request: BaseModel) -> object:
    bound.check(caller)
    return await (command.run or bound.operation.run)(bound.service, Call(caller), request)


def _signature(operation: Operation, command: CommandLine, model: type[BaseModel]) -> inspect.Signature:
    parameters = [_parameter(name, one, positional=True) for name, one in _fields(model, command.positional)]
    options = [
        _parameter(name, one, positional=False)
        for name, one in model.model_fields.items()
        if name not in command.positional
    ]
    about_person = LOCAL_USER if operation.requires is Requires.PERSON else None
    common = [
        _option("user", str | None, about_person, USER_HELP),
        _option("agent", str | None, None, AGENT_HELP),
        inspect.Parameter(
            "as_json",
            inspect.Parameter.KEYWORD_ONLY,
            default=False,
            annotation=Annotated[bool, Parameter(name="--json", negative=(), show_default=False, help=JSON_HELP)],
        ),
    ]
    named = {one.name for one in (*parameters, *options)}
    return inspect.Signature([*parameters, *options, *(one for one in common if one.name not in named)])


def _fields(model: type[BaseModel], names: Sequence[str]) -> list[tuple[str, FieldInfo]]:
    return [(name, model.model_fields[name]) for name in names]


def _parameter(name: str, field: FieldInfo, *, positional: bool) -> inspect.Parameter:
    kind = inspect.Parameter.POSITIONAL_ONLY if positional else inspect.Parameter.KEYWORD_ONLY
    annotation = _option_type(field.annotation)
    default = inspect.Parameter.empty if field.is_required() else None
    if annotation is bool:
        default = bool(field.default)
    elif not field.is_required():
        annotation = annotation | None
    about = Parameter(help=field.description or "", allow_leading_hyphen=annotation in (str, str | None))
    return inspect.Parameter(name, kind, default=default, annotation=Annotated[annotation, about])


def _option(name: str, annotation: object, default: object, words: str) -> inspect.Parameter:
    about = Annotated[annotation, Parameter(help=words)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=about)


def _option_type(annotation: object) -> Any:  # noqa: ANN401 - any type of an option
    """The type of an option. What has no form on a command line is written as JSON."""
    if hasattr(annotation, "__metadata__"):
        return _option_type(get_args(annotation)[0])
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        kept = [one for one in get_args(annotation) if one is not NoneType]
        return _option_type(kept[0]) if len(kept) == 1 else str
    if (
        origin is Literal
        or annotation in PLAIN_TYPES
        or (isinstance(annotation, type) and issubclass(annotation, Enum))
    ):
        return annotation
    if origin in (list, tuple, Sequence) and _option_type(get_args(annotation)[0]) is str:
        return list[str]
    return str


def _parse(value: object) -> object:
    """JSON objects and lists in a text as values; every other text as it is."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _data(answer: object) -> object:
    data = answer.data if isinstance(answer, Answer) else answer
    return data.model_dump(mode="json") if isinstance(data, BaseModel) else data


def _text(answer: object) -> str:
    if isinstance(answer, Answer):
        return answer.text
    data = _data(answer)
    return json.dumps(data, indent=2, ensure_ascii=False) if isinstance(data, Mapping | list) else str(data)
