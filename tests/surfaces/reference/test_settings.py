"""The page of settings tells every one with its names and its default, and none that is not there."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from frontdesk.agent365 import environment
from frontdesk.agent365.headers import TOKEN_VARIABLE, token_variable_of
from frontdesk.settings import Issuer, OAuthClient, PlatformOAuth, Settings, ToolServer
from frontdesk.settings.model import OBSOLETE_VARIABLES, variable_names
from tests.requirements import shows
from tests.support.desk import ROOT
from tests.support.reference import code, page, plain, tables, without_asides

PAGE = page("settings")
# What some settings consist of, by the words before the table that explains it.
PARTS = {
    "A client:": OAuthClient,
    "An MCP server:": ToolServer,
    "Where tokens are fetched:": PlatformOAuth,
    "## An issuer": Issuer,
}
READ = re.compile(r'environ\.get\("(\w+)"')
LONE = re.compile(r"`[^`]+`")


def settings_rows() -> list[tuple[str, ...]]:
    return [row for table in tables(PAGE, "variable", "in the file", "default", "what it does") for row in table.rows]


def part_rows(before: str) -> Iterator[tuple[str, str, str]]:
    """Key, default and explanation; keys that are explained together come one by one."""
    (table,) = [table for table in tables(PAGE, "key", "default", "what it does") if table.before == before]
    for keys, default, about in table.rows:
        for key in code(keys):
            yield key, default, about


def misses(cell: str, field: FieldInfo) -> bool:
    """Whether a page's default is not the field's; one that is empty, or another on each machine, is put into words."""
    default = field.get_default(call_default_factory=True, validated_data={})
    if default in (None, (), "", {}, PydanticUndefined) or isinstance(default, Path):
        return LONE.fullmatch(cell) is not None
    return plain(cell) not in _written(default)


def _written(default: object) -> tuple[str, ...]:
    """A default as one writes it: a list in a variable, or in the file."""
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
    """What a field may hold that has fields itself."""
    return [kind for kind in get_args(field.annotation) if isinstance(kind, type) and issubclass(kind, BaseModel)]


def wrong(told: Mapping[str, str], model: type[BaseModel]) -> dict[str, str]:
    """The defaults on the page that are not those of a model."""
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
    assert [table.before for table in tables(PAGE, "key")] == [*PARTS]


def test_every_variable_of_the_platform_has_a_row_and_every_row_a_variable() -> None:
    (table,) = tables(PAGE, "variable", "default")
    files = ROOT.joinpath("src/frontdesk/agent365").rglob("*.py")
    read = {name for path in files for name in READ.findall(path.read_text())}
    known = {*read, *environment.ENVIRONMENT_VARIABLES, TOKEN_VARIABLE, token_variable_of("<name>")}
    assert {name for names, *_ in table.rows for name in code(names)} == known


def test_the_defaults_of_the_platform_are_those_that_count() -> None:
    (table,) = tables(PAGE, "variable", "default")
    told = {code(names)[0]: plain(default) for names, default, _ in table.rows}
    assert environment.platform_base_url({}) == told["MCP_PLATFORM_ENDPOINT"]
    assert environment.get_mcp_platform_authentication_scope({}) == [told["MCP_PLATFORM_AUTHENTICATION_SCOPE"]]
    assert environment.get_observability_authentication_scope({}) == [told["A365_OBSERVABILITY_SCOPE_OVERRIDE"]]
    assert told["PYTHON_ENVIRONMENT"].lower() == environment.DEVELOPMENT


def test_what_is_no_longer_needed_is_told_with_why() -> None:
    (table,) = tables(PAGE, "variable", "why not")
    told = {plain(name): why for name, why in table.rows}
    assert told == {name: f"{why[0].upper()}{why[1:]}." for name, why in OBSOLETE_VARIABLES.items()}
