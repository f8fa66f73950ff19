"""What a lasting word on a deed would cover: the narrowest thing that is still worth remembering; no I/O."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from frontdesk.workspace.permissions.model import Kind
from frontdesk.workspace.permissions.programs import (
    ACTS,
    BEFORE_OTHERS,
    GIT_ACTS,
    GIT_ACTS_OF,
    INTERPRETERS,
    RUN_ANYTHING,
    RUN_ANYTHING_AS,
    RUN_PROJECT,
    SCRIPTS,
    WITH_COMMANDS,
)

LONGEST = 200
# What can make more than one command of a line, wherever it stands: quotes are not worth a mistake in reading them.
COMPOUND = re.compile(r"[;&|<>`\x00-\x08\x0a-\x1f\x7f]|\$[({]")
PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./:@+-]*")
VERSION = re.compile(r"(?<=[A-Za-z])[0-9.]+$")


@dataclass(frozen=True, slots=True)
class Scope:
    """`name` is what is remembered, and `covers` says it to the person; both are empty where it can be only once.

    `warns` is what else there is to know before it is allowed for good.
    """

    name: str = ""
    covers: str = ""
    warns: str = field(default="", compare=False)


ONCE = Scope()
RUNS_WHAT_IS_WRITTEN = ", which runs code of the workspace, also what the agent writes there"
OF_KIND = {
    Kind.EDIT: Scope("edit", "edits in this workspace"),
    Kind.DELETE: Scope("delete", "deleting files in this workspace"),
    Kind.MOVE: Scope("move", "moving files in this workspace"),
}


def of_kind(kind: Kind) -> Scope:
    return OF_KIND.get(kind, ONCE)


def of_tool(name: str) -> Scope:
    """For a tool of which no more is known than its name."""
    return Scope(f"use {name}", f"every call of {name} in this workspace")


def of_command(command: str, folder: str = "") -> Scope:
    """`folder` is where it runs, unless that is the workspace's own: the same words mean something else there."""
    words = _split(command)
    leading = _leading(words)
    name = " ".join(leading)
    if not name or len(name) > LONGEST:
        return ONCE
    where = f"in {folder}" if folder else "in this workspace"
    alone = len(leading) == len(words) and _program(leading[-1:]) in WITH_COMMANDS
    covers = f"`{name}` by itself {where}" if alone else f"every `{name} …` {where}"
    runs = any("/" in word or _program([word]) in RUN_PROJECT for word in leading)
    return Scope(f"run {name}{f' {where}' if folder else ''}", covers, RUNS_WHAT_IS_WRITTEN if runs else "")


def leading_words(command: str) -> Sequence[str]:
    """The words of a simple command that say what is run; none where a few of them cannot."""
    return _leading(_split(command))


def is_compound(command: str) -> bool:
    """Whether a command may be more than a simple one."""
    return not _split(command)


def program_of(words: Sequence[str]) -> str:
    """The name of what is run, without its folder and version; empty where the shell would have to work it out."""
    return _program(words)


def _split(command: str) -> Sequence[str]:
    """The words of a simple command; none of one that is more than that."""
    if COMPOUND.search(command):
        return ()
    try:
        return shlex.split(command)
    except ValueError:
        return ()


def _leading(words: Sequence[str]) -> Sequence[str]:
    """The words that say what is run; none where a few of them cannot."""
    program = _program(words)
    first, second = (program,), (program, *words[1:2])
    if not program or program in RUN_ANYTHING or second in RUN_ANYTHING_AS:
        return ()
    for before in (first, second):
        if before in BEFORE_OTHERS:
            return _after(words[: len(before)], words[len(before) :])
    if program in INTERPRETERS:
        return _interpreted(words, INTERPRETERS[program])
    if _acts(program, words):
        return ()
    if program in WITH_COMMANDS and len(words) > 1:
        return _named(words, 3 if second in SCRIPTS else 2)
    return words[:1]


def _acts(program: str, words: Sequence[str]) -> bool:
    """Whether an argument makes a program that else is plain run others, delete or write."""
    told = ACTS.get(program, ())
    if program == "git" and len(words) > 1:
        told = (*GIT_ACTS, *GIT_ACTS_OF.get(words[1], ()))
    return any(_may_mean(word, option) for word in words[1:] for option in told)


def _may_mean(word: str, option: str) -> bool:
    """Also where the option is shortened (`--open` for `--open-files-in-pager`) or follows others (`-nO`)."""
    if word.startswith(option):
        return True
    name = word.partition("=")[0]
    if option.startswith("--"):
        return len(name) > len("--") and option.startswith(name)
    return len(option) == len("-O") and word.startswith("-") and not word.startswith("--") and option[1] in name


def _program(words: Sequence[str]) -> str:
    """The name of what is run, without its folder and version; empty where the shell would have to work it out."""
    if not words or not PLAIN.fullmatch(words[0]):
        return ""
    return VERSION.sub("", PurePath(words[0]).name.removesuffix(".exe"))


def _after(before: Sequence[str], others: Sequence[str]) -> Sequence[str]:
    leading = _leading(others)
    return (*before, *leading) if leading else ()


def _interpreted(words: Sequence[str], option: str) -> Sequence[str]:
    if option and list(words[1:2]) == [option] and _named(words[2:], 1):
        return words[:3]
    return _named(words, 2)


def _named(words: Sequence[str], count: int) -> Sequence[str]:
    """The first words, where all of them are plain: an option before a command can change what that does."""
    found = words[:count]
    return found if len(found) == count and all(map(PLAIN.fullmatch, found)) else ()
