"""The page of the command line names every command with its options, every scope, and nothing that is not there."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from cyclopts import App as Command

from frontdesk.identity.rights import SCOPES
from frontdesk.interfaces.cli.main import command
from tests.support.reference import code, page, plain, tables

PAGE = page("cli")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
NAME = re.compile(r"frontdesk((?: [a-z][a-z-]*)*)")
GROUP = re.compile(r"\[(\w+ options)\]")
VALUE = re.compile(r"--[a-z-]+ \S+")
PLACE = re.compile(r"\b[A-Z]{2,}\b")


@dataclass(frozen=True, slots=True)
class Row:
    """How a command is called, and what the page says of it."""

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
        """Whether it shows something that is not the value of an option."""
        return PLACE.search(VALUE.sub("", self.call)) is not None


@dataclass(frozen=True, slots=True)
class Real:
    """A command as it is: what calls it, whether help shows it, and all names of each of its options."""

    name: str
    shown: bool
    options: tuple[tuple[str, ...], ...]
    by_place: bool

    @property
    def names(self) -> set[str]:
        return {name for names in self.options for name in names}


def rows() -> Iterator[Row]:
    (table,) = tables(PAGE, "command")
    for calls, about in table.rows:
        for call in code(calls):
            found = NAME.match(call)
            assert found, f"{call} calls nothing of ours"
            yield Row(found[1].strip(), call, about)


def groups() -> Mapping[str, list[str]]:
    """What the page says once of options that several commands share."""
    (table,) = tables(PAGE, "options")
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
    assert set(OPTION.findall(PAGE)) - known == set()


def test_every_scope_is_told_as_people_are_asked_for_it() -> None:
    (table,) = tables(PAGE, "scope")
    assert [(plain(scope), plain(about)) for scope, about in table.rows] == list(SCOPES.items())
