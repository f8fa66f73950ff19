"""Tests the pages under docs/reference against the code."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from cyclopts import App as Command
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from frontdesk.agent365 import environment
from frontdesk.agent365.headers import TOKEN_VARIABLE, token_variable_of
from frontdesk.app import CORE_OPERATIONS, App
from frontdesk.identity.rights import SCOPES
from frontdesk.interfaces.cli.main import command
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.mcp.login_tools import LOGIN_OPERATIONS
from frontdesk.interfaces.mcp.tools import input_schema, mcp_tool, tool_name, tool_request
from frontdesk.interfaces.rest.api import API_PREFIX, status_routes
from frontdesk.operation_table import OPERATIONS
from frontdesk.operations import McpPath, Operation
from frontdesk.settings import Issuer, OAuthClient, PlatformOAuth, Settings, ToolServer
from frontdesk.settings.model import OBSOLETE_VARIABLES, variable_names
from tests.requirements import shows
from tests.support.desk import ROOT
from tests.support.wire import send

# The reference pages as data: their tables with the headings above them, and the words in code style


BAR = re.compile(r"(?<!\\)\|")
CODE = re.compile(r"`([^`]+)`")
ASIDE = re.compile(r"\([^()]*\)")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a page: the heading it is under, the paragraph before it, its columns, and the cells of its rows."""

    heading: str
    before: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def page(name: str) -> str:
    return ROOT.joinpath("docs/reference", f"{name}.md").read_text()


def tables(text: str, *columns: str) -> list[Table]:
    """The tables of a page whose first columns have these names."""
    found = [table for table in _every_table(text) if table.columns[: len(columns)] == columns]
    assert found, f"no table begins with the columns {columns}"
    return found


def _every_table(text: str) -> Iterator[Table]:
    heading = before = ""
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("#"):
            heading = paragraph.lstrip("# ")
        if paragraph.startswith("|"):
            columns, _, *rows = map(_cells, paragraph.strip().splitlines())
            yield Table(heading, before, columns, tuple(rows))
        before = paragraph


def _cells(row: str) -> tuple[str, ...]:
    return tuple(cell.strip().replace(r"\|", "|") for cell in BAR.split(row)[1:-1])


def code(text: str) -> list[str]:
    """The parts in code style."""
    return CODE.findall(text)


def without_asides(text: str) -> str:
    """The same without the text in brackets, which explains the word before it."""
    return ASIDE.sub("", text)


def plain(text: str) -> str:
    """The same words without code style."""
    return text.replace("`", "")


# The page of the command line has every command with its options and every scope, and nothing else


CLI_PAGE = page("cli")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
NAME = re.compile(r"frontdesk((?: [a-z][a-z-]*)*)")
GROUP = re.compile(r"\[(\w+ options)\]")
VALUE = re.compile(r"--[a-z-]+ \S+")
PLACE = re.compile(r"\b[A-Z]{2,}\b")


@dataclass(frozen=True, slots=True)
class Row:
    """The usage of a command, and its description on the page."""

    name: str
    call: str
    about: str

    @property
    def called_with(self) -> set[str]:
        return {*OPTION.findall(self.call), *(name for group in GROUP.findall(self.call) for name in groups()[group])}

    @property
    def options(self) -> set[str]:
        return {*self.called_with, *OPTION.findall(self.about)}

    @property
    def by_place(self) -> bool:
        """Whether it shows more than the value of an option."""
        return PLACE.search(VALUE.sub("", self.call)) is not None


@dataclass(frozen=True, slots=True)
class Real:
    """A real command: its name, whether help shows it, and all names of each of its options."""

    name: str
    shown: bool
    options: tuple[tuple[str, ...], ...]
    by_place: bool

    @property
    def names(self) -> set[str]:
        return {name for names in self.options for name in names}


def rows() -> Iterator[Row]:
    (table,) = tables(CLI_PAGE, "command")
    for calls, about in table.rows:
        for call in code(calls):
            found = NAME.match(call)
            assert found, f"{call} calls nothing of ours"
            yield Row(found[1].strip(), call, about)


def groups() -> Mapping[str, list[str]]:
    """The page's description of options that several commands share."""
    (table,) = tables(CLI_PAGE, "options")
    return {name: OPTION.findall(options) for name, options in table.rows}


@cache
def commands() -> Mapping[str, Real]:
    return {real.name: real for real in _walked(command)}


def _walked(app: Command, *words: str) -> Iterator[Real]:
    if app.default_command is not None:
        found = app.assemble_argument_collection()
        options = tuple(one.names for one in found if one.show and one.name.startswith("--"))
        yield Real(" ".join(words), app.show, options, any(one.index is not None for one in found))
    for name in app:
        if not name.startswith("-"):
            yield from _walked(app[name], *words, name)


def test_every_command_has_a_row_and_every_row_a_command() -> None:
    told = {row.name for row in rows()}
    shown = {name for name, real in commands().items() if real.shown}
    assert (shown - told, told - commands().keys()) == (set(), set())


def test_a_command_is_told_with_each_of_its_options() -> None:
    told = {name: {option for row in rows() if row.name == name for option in row.called_with} for name in commands()}
    untold = {
        f"{name} {names[0]}"
        for name, real in commands().items()
        for names in real.options
        if real.shown and names[0] not in told[name]
    }
    assert untold == set()


def test_a_row_names_no_option_that_its_command_does_not_have() -> None:
    known = {name: real.names for name, real in commands().items()}
    assert {f"{row.name} {option}" for row in rows() for option in row.options - known[row.name]} == set()


def test_a_row_shows_what_is_given_by_place_where_its_command_takes_that() -> None:
    shown = {row.name for row in rows() if row.by_place}
    taken = {name for name, real in commands().items() if real.shown and real.by_place}
    assert (taken - shown, shown - taken) == (set(), set())


def test_options_that_are_told_once_are_those_of_some_row() -> None:
    assert {group for row in rows() for group in GROUP.findall(row.call)} == groups().keys()


def test_an_option_is_one_of_some_command_wherever_the_page_names_it() -> None:
    known = {option for real in commands().values() for option in real.names}
    assert set(OPTION.findall(CLI_PAGE)) - known == set()


def test_every_scope_is_told_as_people_are_asked_for_it() -> None:
    (table,) = tables(CLI_PAGE, "scope")
    assert [(plain(scope), plain(about)) for scope, about in table.rows] == list(SCOPES.items())


# The page of MCP has every tool of every interface with its arguments, and nothing else


PAGE = page("mcp")
LIKE = re.compile(r"as `(\w+)`(?: but for (.+))?")
NEEDED = re.compile(r"`(\w+)`\\\*")
# The page calls these "page".
PAGED = {"limit", "offset"}


@cache
def mcp_rows() -> Mapping[str, str]:
    """The arguments of each tool, in the page's words."""
    return {
        tool: without_asides(takes) for table in tables(PAGE, "tool", "arguments") for tool, takes, *_ in table.rows
    }


def told(tool: str) -> set[str]:
    """The arguments that the page names, in the tool's row or in the section that its row points to."""
    row = mcp_rows()[f"`{tool}`"]
    found = {*code(LIKE.sub("", row)), *_below(tool)}
    if like := LIKE.search(row):
        found |= told(like[1]) - set(code(like[2] or ""))
    if ", page" in row:
        found |= PAGED
    if "option below" in row:
        found |= _below("Schedules", "option")
    return found


def _below(heading: str, column: str = "argument") -> set[str]:
    """The entries that the tables under a heading explain."""
    found = [table for table in tables(PAGE, column) if table.heading == heading]
    return {name for table in found for names, *_ in table.rows for name in code(names)}


TOOLS = [
    operation
    for operations in (CORE_OPERATIONS, LOGIN_OPERATIONS, *OPERATIONS.values())
    for operation in operations
    if operation.mcp is not None
]


def taken(tool: Operation) -> set[str]:
    return {*input_schema(tool).get("properties", {})}


def own(tool: Operation) -> set[str]:
    """The arguments of a tool without the agent's id, which the page explains once for all tools."""
    return taken(tool) if "agent_id" in tool_request(tool).model_fields else taken(tool) - {"agent_id"}


@shows("DOCS-MEMORY")
def test_every_tool_has_one_row_and_every_row_a_tool() -> None:
    named = [tool for table in tables(PAGE, "tool") for tool, *_ in table.rows]
    assert sorted(named) == sorted(f"`{tool_name(tool)}`" for tool in TOOLS)


@shows("DOCS-MEMORY")
def test_a_tool_is_told_with_each_of_its_arguments_and_no_other() -> None:
    named = [(tool_name(tool), tool) for tool in TOOLS]
    untold = {f"{name} {argument}" for name, tool in named for argument in own(tool) - told(name)}
    unknown = {f"{name} {argument}" for name, tool in named for argument in told(name) - taken(tool)}
    assert (untold, unknown) == (set(), set())


@shows("DOCS-MEMORY")
def test_what_a_memory_tool_needs_is_marked() -> None:
    ours = {tool_name(tool): tool for tool in TOOLS if mcp_tool(tool).path is McpPath.MEMORY}
    marked = {name: set(NEEDED.findall(mcp_rows()[f"`{name}`"])) for name in ours}
    assert marked == {name: set(input_schema(tool).get("required", ())) for name, tool in ours.items()}


def test_a_heading_that_explains_arguments_is_that_of_a_tool() -> None:
    assert {table.heading for table in tables(PAGE, "argument")} <= set(map(tool_name, TOOLS))


# The page of the HTTP API has every route of its description, and nothing else


# The page calls most ids "id".
ID = re.compile(r"\{\w+\}")
UNDER = re.compile(r"^Under `(/\S+)`")


def rest_told() -> set[str]:
    return {route for table in tables(page("rest"), "route") for route in _routes(table)}


def _routes(table: Table) -> set[str]:
    """The routes of a table, each with the prefix that the page names once."""
    under = UNDER.match(table.before)
    found = [route.partition("?")[0].split(" ", 1) for row in table.rows for route in code(row[0])]
    return {ID.sub("{}", f"{method} {under[1] if under else ''}{path}".rstrip("/")) for method, path in found}


async def described(app: App) -> set[str]:
    """The routes of the OpenAPI description, and the two routes outside of it."""
    answer = await send(build_application(app), {}, b"", path="/api/openapi.json", method="GET")
    ours = {
        ID.sub("{}", f"{method.upper()} {API_PREFIX}{path}")
        for path, of in answer.json["paths"].items()
        for method in of
    }
    return ours | {f"GET {route.path}" for route in status_routes(app)}


@shows("DOCS-MEMORY")
async def test_every_route_is_told_and_no_other(app: App) -> None:
    real = await described(app)
    assert (real - rest_told(), rest_told() - real) == (set(), set())


# The page of settings has every setting with its names and its default, and nothing else


SETTINGS_PAGE = page("settings")
# The parts of some settings, by the words before the table that explains them.
PARTS = {
    "A client:": OAuthClient,
    "An MCP server:": ToolServer,
    "Where tokens are fetched:": PlatformOAuth,
    "## An issuer": Issuer,
}
READ = re.compile(r'environ\.get\("(\w+)"')
LONE = re.compile(r"`[^`]+`")


def settings_rows() -> list[tuple[str, ...]]:
    return [
        row
        for table in tables(SETTINGS_PAGE, "variable", "in the file", "default", "what it does")
        for row in table.rows
    ]


def part_rows(before: str) -> Iterator[tuple[str, str, str]]:
    """Key, default and explanation; keys that are explained together come one by one."""
    (table,) = [table for table in tables(SETTINGS_PAGE, "key", "default", "what it does") if table.before == before]
    for keys, default, about in table.rows:
        for key in code(keys):
            yield key, default, about


def misses(cell: str, field: FieldInfo) -> bool:
    """Whether a page's default differs from the field's; it describes empty and machine-dependent ones in words."""
    default = field.get_default(call_default_factory=True, validated_data={})
    if default in (None, (), "", {}, PydanticUndefined) or isinstance(default, Path):
        return LONE.fullmatch(cell) is not None
    return plain(cell) not in _written(default)


def _written(default: object) -> tuple[str, ...]:
    """A default as users write it: a list in a variable, or in the file."""
    match default:
        case bool():
            return (str(default).lower(),)
        case float():
            return (f"{default:g}",)
        case tuple():
            return ",".join(map(str, default)), json.dumps(default)  # pyright: ignore[reportUnknownArgumentType]
        case _:
            return (str(default),)


def _models(field: FieldInfo) -> list[type[BaseModel]]:
    """The models of a field's value, if it has fields of its own."""
    return [kind for kind in get_args(field.annotation) if isinstance(kind, type) and issubclass(kind, BaseModel)]


def wrong(told: Mapping[str, str], model: type[BaseModel]) -> dict[str, str]:
    """The defaults on the page that differ from those of a model."""
    return {name: cell for name, cell in told.items() if misses(cell, model.model_fields[name])}


@shows("SETTINGS-DOC")
def test_every_setting_has_one_row_with_its_variables_and_every_row_a_setting() -> None:
    told = [(plain(key), tuple(code(names))) for names, key, *_ in settings_rows()]
    assert sorted(told) == sorted((field, variable_names(field)) for field in Settings.model_fields)


@shows("SETTINGS-DOC")
def test_the_default_of_a_setting_is_the_one_that_counts() -> None:
    assert wrong({plain(key): default for _, key, default, _ in settings_rows()}, Settings) == {}


@shows("SETTINGS-DOC")
def test_a_setting_is_explained_as_the_code_explains_it_or_further() -> None:
    told = {plain(key): plain(about) for _, key, _, about in settings_rows()}
    said = {name: plain(field.description or "nothing") for name, field in Settings.model_fields.items()}
    assert {name for name, about in said.items() if not told[name].startswith(about)} == set()


@pytest.mark.parametrize("before", PARTS)
def test_what_a_setting_consists_of_is_told_key_by_key_with_its_default(before: str) -> None:
    told = {key: default for key, default, _ in part_rows(before)}
    assert told.keys() == PARTS[before].model_fields.keys()
    assert wrong(told, PARTS[before]) == {}


@pytest.mark.parametrize("before", PARTS)
def test_a_key_that_has_keys_of_its_own_names_them(before: str) -> None:
    for key, _, about in part_rows(before):
        for inner in _models(PARTS[before].model_fields[key]):
            assert set(code(without_asides(about))) == inner.model_fields.keys(), key


def test_every_table_of_keys_is_that_of_a_setting() -> None:
    assert [table.before for table in tables(SETTINGS_PAGE, "key")] == [*PARTS]


def test_every_variable_of_the_platform_has_a_row_and_every_row_a_variable() -> None:
    (table,) = tables(SETTINGS_PAGE, "variable", "default")
    files = ROOT.joinpath("src/frontdesk/agent365").rglob("*.py")
    read = {name for path in files for name in READ.findall(path.read_text())}
    known = {*read, *environment.ENVIRONMENT_VARIABLES, TOKEN_VARIABLE, token_variable_of("<name>")}
    assert {name for names, *_ in table.rows for name in code(names)} == known


def test_the_defaults_of_the_platform_are_those_that_count() -> None:
    (table,) = tables(SETTINGS_PAGE, "variable", "default")
    told = {code(names)[0]: plain(default) for names, default, _ in table.rows}
    assert environment.platform_base_url({}) == told["MCP_PLATFORM_ENDPOINT"]
    assert environment.get_mcp_platform_authentication_scope({}) == [told["MCP_PLATFORM_AUTHENTICATION_SCOPE"]]
    assert environment.get_observability_authentication_scope({}) == [told["A365_OBSERVABILITY_SCOPE_OVERRIDE"]]
    assert told["PYTHON_ENVIRONMENT"].lower() == environment.DEVELOPMENT


def test_what_is_no_longer_needed_is_told_with_why() -> None:
    (table,) = tables(SETTINGS_PAGE, "variable", "why not")
    told = {plain(name): why for name, why in table.rows}
    assert told == {name: f"{why[0].upper()}{why[1:]}." for name, why in OBSOLETE_VARIABLES.items()}
