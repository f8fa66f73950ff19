"""Writes the module with the methods of the library, from the declared operations."""

import inspect
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from pydantic import SecretStr

from frontdesk.interfaces.library.exposure import UNSET, LibraryMethod, Parameter, library_methods

ROOT = Path(__file__).parents[1]
WIDTH = 120
MODULE_DOCSTRING = (
    "The methods of the library: everything that can be asked of Frontdesk, by capability.\n\n"
    "`python -m generate` writes this file from the declared operations; change those.\n"
)
GROUPS: Mapping[str, tuple[str, str]] = {
    "tools": (
        "ToolMethods",
        "Find and call the tools of servers, choose an agent's tools, and administer the catalogue.",
    ),
    "schedules": ("ScheduleMethods", "Prompts that come to an agent later, and what became of them."),
    "chat": ("ChatMethods", "A person's sessions with agents."),
    "keys": ("KeyMethods", "A person's own API keys."),
    "tasks": ("TaskMethods", "A person's tasks, their subtasks and their relations."),
    "time": ("TimeMethods", "The time that a person spends on tasks, activities and items."),
    "work": ("WorkMethods", "The queue of work that a person has for agents."),
    "memories": ("MemoryMethods", "What is remembered for a person."),
    "activities": ("ActivityMethods", "A person's activities."),
    "timeline": ("TimelineMethods", "A person's timeline, with everything that is on it."),
    "categories": ("CategoryMethods", "A person's categories."),
    "person": ("PersonMethods", "A person's settings and statistics, and all of their data."),
}
LIST_TYPES = frozenset({list, tuple, set, frozenset, Sequence, Iterable})
MAPPING_TYPES = frozenset({dict, Mapping})
PLAIN_TYPES = (str, int, float, bool)
JSON_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


@dataclass(slots=True)
class Names:
    """The names that the module imports, and the aliases that it defines for enumerations."""

    imports: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    aliases: dict[str, str] = field(default_factory=dict[str, str])

    def imported(self, module: str, name: str) -> str:
        self.imports.add((module, name))
        return name

    def literal(self, values: Iterable[object]) -> str:
        self.imported("typing", "Literal")
        return f"Literal[{', '.join(map(repr, values))}]"

    def any(self) -> str:
        return self.imported("typing", "Any")

    def mapping(self, key: str, value: str) -> str:
        return f"{self.imported('collections.abc', 'Mapping')}[{key}, {value}]"

    def sequence(self, item: str) -> str:
        return f"{self.imported('collections.abc', 'Sequence')}[{item}]"


def library_module() -> str:
    """The whole module, formatted."""
    names, groups = Names(), dict[str, list[LibraryMethod]]()
    for method in library_methods().values():
        groups.setdefault(method.group, []).append(method)
    names.imports |= {(BASE, "CallTransport")}
    classes = [_group_class(names, group, methods) for group, methods in groups.items() if group]
    classes.append(_desk_class(names, groups))
    aliases = "".join(f"{name} = {value}\n" for name, value in sorted(names.aliases.items()))
    imports = "".join(f"from {module} import {name}\n" for module, name in sorted(names.imports))
    return _formatted("\n\n".join([f'"""{MODULE_DOCSTRING}"""\n\n{imports}\n\n{aliases}', *classes]))


REMOVABLE = "A parameter that is left out changes nothing; None removes a value."
BASE = "frontdesk.interfaces.library.exposure"


def _formatted(source: str) -> str:
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["check", "--select", "I", "--fix", "--quiet"], ["format"]):
        done = subprocess.run(
            [*ruff, *command, "--stdin-filename", "src/frontdesk/interfaces/library/methods.py", "-"],
            input=source,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        source = done.stdout
    return source


def _group_class(names: Names, group: str, methods: Sequence[LibraryMethod]) -> str:
    name, docstring = GROUPS[group]
    return f"class {name}:\n{_indent(_docstring(docstring))}\n\n{INIT}\n{_methods(names, methods)}"


def _desk_class(names: Names, groups: Mapping[str, Sequence[LibraryMethod]]) -> str:
    made = "".join(f"        self.{group} = {GROUPS[group][0]}(transport)\n" for group in groups if group)
    docstring = _indent(_docstring("Everything that can be asked of Frontdesk, by capability."))
    return f"class DeskMethods:\n{docstring}\n\n{INIT}{made}\n{_methods(names, groups[''])}"


INIT = "    def __init__(self, transport: CallTransport) -> None:\n        self._transport = transport\n"


def _methods(names: Names, methods: Sequence[LibraryMethod]) -> str:
    return "\n".join(_method(names, one) for one in methods)


def _method(names: Names, method: LibraryMethod) -> str:
    parameters = sorted(method.parameters.values(), key=lambda one: not one.required)
    signature = "".join(f", {_signature(names, one)}" for one in parameters)
    star = ", *" if parameters else ""
    answer = python_type(names, method.response, for_answer=True)
    arguments = ", ".join(f"{one.name!r}: {one.name}" for one in parameters)
    body = f"return await self._transport.call({method.name!r}, {{{arguments}}})"
    head = f"async def {method.name}(self{star}{signature}) -> {answer}:"
    return _indent(f"{head}\n{_indent(_method_docstring(method, parameters))}\n    {body}\n")


def _signature(names: Names, parameter: Parameter) -> str:
    kind = parameter_type(names, parameter)
    if parameter.required:
        return f"{parameter.name}: {kind}"
    default = parameter.default
    if default is UNSET:
        unset, name = names.imported(BASE, "Unset"), names.imported(BASE, "UNSET")
        return f"{parameter.name}: {kind.removesuffix(' | None')} | {unset} | None = {name}"
    if isinstance(default, dict):
        # A parameter of this type must not be shared between calls.
        return f"{parameter.name}: {_optional(kind)} = None"
    kind = _optional(kind) if default is None else kind
    return f"{parameter.name}: {kind} = {_rendered(default)}"


def _optional(kind: str) -> str:
    return kind if kind.rsplit(" | ", maxsplit=1)[-1] in ("None", "Any") else f"{kind} | None"


def _rendered(value: object) -> str:
    if isinstance(value, Enum):
        return repr(value.value)
    if isinstance(value, list | tuple | set | frozenset):
        return f"({''.join(f'{_rendered(one)}, ' for one in cast('Iterable[object]', value))})"
    return repr(value)


def parameter_type(names: Names, parameter: Parameter) -> str:
    """The type of a parameter as source."""
    if parameter.loose:
        kind = json_type(names, parameter.schema)
        return "object" if kind == "Any" else kind
    return python_type(names, parameter.field.annotation)


def json_type(names: Names, schema: Mapping[str, Any]) -> str:
    """The type that a JSON schema describes."""
    kinds = schema.get("anyOf") or schema.get("type")
    if isinstance(kinds, list):
        parts = cast("list[Mapping[str, Any] | str]", kinds)
        return " | ".join(
            dict.fromkeys(json_type(names, {"type": part} if isinstance(part, str) else part) for part in parts)
        )
    if "enum" in schema:
        return names.literal(schema["enum"])
    if kinds == "array":
        return names.sequence(json_type(names, schema.get("items", {})))
    if kinds == "object":
        return names.mapping("str", names.any())
    return JSON_TYPES.get(str(kinds)) or names.any()


def python_type(names: Names, annotation: Any, *, for_answer: bool = False) -> str:  # noqa: ANN401 - any type
    """A type as source, without the constraints of pydantic.

    Parameters take the values of an enumeration, and a mapping in place of a model. An answer has its own types.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return python_type(names, arguments[0], for_answer=for_answer)
    if origin in (Union, UnionType):
        parts = [python_type(names, one, for_answer=for_answer) for one in arguments]
        # None stands last, as one writes it.
        return " | ".join(sorted(dict.fromkeys(parts), key=lambda part: part == "None"))
    if origin is Literal:
        return names.literal(arguments)
    if origin is not None or annotation in LIST_TYPES | MAPPING_TYPES:
        return _generic_type(names, origin or annotation, arguments, for_answer=for_answer)
    return _simple_type(names, annotation, for_answer=for_answer)


def _generic_type(names: Names, origin: Any, arguments: Sequence[Any], *, for_answer: bool) -> str:  # noqa: ANN401
    items = [python_type(names, one, for_answer=for_answer) for one in arguments if one is not Ellipsis]
    if origin in MAPPING_TYPES:
        key, value = items or ["str", names.any()]
        return names.mapping(key, value)
    item = items[0] if items else names.any()
    return f"list[{item}]" if for_answer and origin is list else names.sequence(item)


def _simple_type(names: Names, annotation: Any, *, for_answer: bool) -> str:  # noqa: ANN401
    if annotation in (None, NoneType):
        return "None"
    if annotation in (Any, object):
        return names.any()
    if annotation in PLAIN_TYPES:
        return annotation.__name__
    if annotation is SecretStr:
        return "str"
    if not for_answer and issubclass(annotation, Enum):
        alias = f"{annotation.__name__}Value"
        names.aliases[alias] = names.literal(member.value for member in annotation)
        return alias
    name = names.imported(annotation.__module__, annotation.__name__)
    is_model = not for_answer and hasattr(annotation, "model_fields")
    return f"{name} | {names.mapping('str', names.any())}" if is_model else name


def _method_docstring(method: LibraryMethod, parameters: Sequence[Parameter]) -> str:
    described = [_described(one) for one in parameters]
    sections = [
        _sentence(method.operation.summary),
        *([REMOVABLE] if any(one.removable for one in parameters) else []),
        *(["Args:\n" + "\n".join(chain.from_iterable(map(_entry, described)))] if described else []),
        "Returns:\n" + "\n".join(_wrapped(_answer_text(method.response), 4, 4)),
    ]
    return _docstring("\n\n".join(sections))


def _docstring(text: str) -> str:
    """A docstring; its first line may be as long as a line of code, and what is longer goes on below."""
    quoted = text.replace("\\", "\\\\").replace('"""', "'''")
    first, _, rest = quoted.partition("\n")
    lines = textwrap.wrap(first, WIDTH - 12)
    ends = f"\n{rest}\n" if rest else "\n" if len(lines) > 1 else ""
    return '"""' + "\n".join(lines) + ends + '"""'


def _entry(described: tuple[str, str]) -> Sequence[str]:
    name, text = described
    return _wrapped(f"{name}: {text}", 4, 8)


def _wrapped(text: str, first: int, others: int) -> Sequence[str]:
    """Lines for the docstring of a method, which is indented by eight later."""
    return textwrap.wrap(
        text,
        WIDTH - 8,
        initial_indent=" " * first,
        subsequent_indent=" " * others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _described(parameter: Parameter) -> tuple[str, str]:
    text = parameter.description
    if not text:
        text = _noun(parameter) + _bounds(parameter.schema)
    return parameter.name, _sentence(text)


def _noun(parameter: Parameter) -> str:
    """What the name of a parameter without a description says."""
    words = parameter.name.strip("_").removesuffix("_id").replace("_", " ")
    annotation = parameter.field.annotation
    if annotation is bool or bool in get_args(annotation) or parameter.schema.get("type") == "boolean":
        return f"Yes or no: {words.removeprefix('is ')}"
    return f"The {words}'s id" if parameter.name.endswith("_id") else f"The {words}"


def _bounds(schema: Mapping[str, Any]) -> str:
    """What a schema says of a value's size, after a comma."""
    parts = cast("Sequence[Mapping[str, Any]]", schema.get("anyOf", [schema]))
    found = {key: value for part in parts for key, value in part.items()}
    if "minimum" in found and "maximum" in found:
        return f", {found['minimum']} to {found['maximum']:,}"
    if "maxLength" in found:
        return f", at most {found['maxLength']:,} characters"
    return f", at most {found['maxItems']:,}" if "maxItems" in found else ""


def _answer_text(answer: Any) -> str:  # noqa: ANN401 - any type
    """What the docstrings of an answer's classes say."""
    if inspect.isclass(answer) and get_origin(answer) is None:
        return _sentence(inspect.getdoc(answer) or "")
    if get_origin(answer) is Annotated:
        return _answer_text(get_args(answer)[0])
    texts = [_answer_text(one) for one in get_args(answer) if one is not NoneType]
    return f"A list: {texts[0]}" if get_origin(answer) is list else " Or: ".join(texts)


def _sentence(text: str) -> str:
    """The first paragraph on one line, with a period at the end."""
    line = " ".join(text.partition("\n\n")[0].split())
    return line if line.endswith((".", "!", "?", ":")) else f"{line}."


def _indent(text: str) -> str:
    return textwrap.indent(text, "    ")
