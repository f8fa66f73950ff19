"""Decides what a lasting permission for a command covers: the narrowest scope worth remembering."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from frontdesk.coding.model import OperationKind

# The first word after one of these names a subcommand.
SUBCOMMAND_PROGRAMS = frozenset(
    re.findall(
        r"\S+",
        """
        apt apt-get aws az brew bundle bun cargo cmake composer conda dart deno docker docker-compose dotnet flutter
        gcloud gem gh git glab go gradle gradlew hatch helm invoke just kubectl make mix mvn mvnw nix npm nx pdm pip
        pipenv pipx pnpm podman poetry pre-commit rake rustup swift systemctl task terraform tox turbo uv yarn zig
        """,
    )
)

# The next word after these is the name of a script of the project.
SCRIPT_COMMANDS = frozenset({("bun", "run"), ("deno", "task"), ("npm", "run"), ("pnpm", "run"), ("yarn", "run")})

# After these comes a whole command.
PREFIX_COMMANDS = frozenset(
    {("bundle", "exec"), ("npx",), ("pdm", "run"), ("pipenv", "run"), ("poetry", "run"), ("uv", "run"), ("uvx",)}
)

# These run a file. The option, where there is one, also names what to run; any other option may be followed by code.
INTERPRETERS: Mapping[str, str] = {
    "java": "-jar",
    "lua": "",
    "node": "",
    "perl": "",
    "php": "",
    "python": "-m",
    "Rscript": "",
    "ruby": "",
    "tsx": "",
}

# A lasting answer for one of these would cover everything.
ARBITRARY_RUNNERS = frozenset(
    re.findall(
        r"\S+",
        """
        alias ash at awk bash batch builtin busybox chroot cmd command coproc crontab csh dash doas ed emacs entr env
        eval ex exec expect export fd fdfind fish flock gawk gdb ionice irb jshell ksh less lldb man mawk more nawk nice
        nohup nsenter nvim osascript parallel powershell pwsh rlwrap rsh rsync runuser scp screen script sed set setsid
        sftp sh socat source sqlite3 ssh stdbuf strace su sudo tar taskset tclsh time timeout tmux trap unshare vi view
        vim vimdiff watch watchexec xargs zip zsh
        """,
    )
)
ARBITRARY_RUN_COMMANDS = frozenset(
    {
        ("bun", "x"),
        ("conda", "run"),
        ("deno", "eval"),
        ("deno", "run"),
        ("docker", "compose"),
        ("docker", "exec"),
        ("docker", "run"),
        ("docker-compose", "exec"),
        ("docker-compose", "run"),
        ("git", "bisect"),
        ("git", "config"),
        ("git", "filter-branch"),
        ("git", "submodule"),
        ("go", "run"),
        ("hatch", "run"),
        ("kubectl", "exec"),
        ("mix", "eval"),
        ("mix", "run"),
        ("nix", "develop"),
        ("nix", "run"),
        ("nix", "shell"),
        ("npm", "exec"),
        ("npm", "x"),
        ("pipx", "run"),
        ("pnpm", "dlx"),
        ("pnpm", "exec"),
        ("podman", "exec"),
        ("podman", "run"),
        ("rustup", "run"),
        ("uv", "tool"),
        ("yarn", "dlx"),
        ("yarn", "exec"),
    }
)

# Beginnings of arguments with which an otherwise plain program runs others, deletes or writes, or reads what it runs
# from another place.
ACTING_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "cargo": ("--manifest-path", "--config"),
    "file": ("-C", "--compile"),
    "find": ("-exec", "-ok", "-delete", "-fprint", "-fls"),
    "just": ("-f", "--justfile", "-d", "--working-directory", "--shell"),
    "make": ("-f", "--file", "--makefile", "-C", "--directory", "--eval", "SHELL="),
    "npm": ("--prefix", "--script-shell", "-C"),
    "pnpm": ("--prefix", "--script-shell", "--dir", "-C"),
    "rg": ("--pre", "--hostname-bin"),
    "sort": ("--compress-program",),
    "tox": ("-c", "--conf"),
    "tree": ("-o",),
    "yarn": ("--cwd",),
}
# Such beginnings for git: for all commands, and for some.
GIT_ACTING_OPTIONS = ("--output", "--ext-diff", "--exec", "--upload-pack", "--receive-pack", "--open-files-in-pager")
GIT_COMMAND_ACTING_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "archive": ("-o", "--remote"),
    "clone": ("-c", "--config", "-u", "--template"),
    "difftool": ("-x", "--extcmd"),
    "format-patch": ("-o",),
    "grep": ("-O",),
    "init": ("--template", "--separate-git-dir"),
    "rebase": ("-x", "-i", "--interactive"),
}

# These do not change the files that they name, so they may name any.
READING_PROGRAMS = frozenset(
    re.findall(r"\S+", "cat cd cksum cmp diff du file find grep head ls md5sum rg sha256sum stat tail tree wc")
)
READING_GIT_COMMANDS = frozenset(re.findall(r"\S+", "add blame commit diff log ls-files ls-tree show status"))

# The files that define what the words after a program mean: a lasting answer for `make test` depends on them.
DEFINITION_FILES: Mapping[str, tuple[str, ...]] = {
    "ant": ("build.xml",),
    "bun": ("package.json", "bunfig.toml"),
    "bundle": ("Gemfile",),
    "cargo": ("Cargo.toml", "build.rs", "rust-toolchain", "rust-toolchain.toml"),
    "cmake": ("CMakeLists.txt", "CMakePresets.json"),
    "composer": ("composer.json",),
    "deno": ("deno.json", "deno.jsonc", "package.json"),
    "docker-compose": ("docker-compose.yml", "docker-compose.yaml", "compose.yml", "compose.yaml"),
    "gradle": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    "gradlew": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    "hatch": ("pyproject.toml", "hatch.toml"),
    "invoke": ("tasks.py",),
    "just": ("justfile", "Justfile", ".justfile"),
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "mix": ("mix.exs",),
    "mvn": ("pom.xml",),
    "mvnw": ("pom.xml",),
    "npm": ("package.json",),
    "nox": ("noxfile.py",),
    "nx": ("nx.json", "project.json", "package.json"),
    "pdm": ("pyproject.toml",),
    "pip": ("pyproject.toml", "setup.py", "setup.cfg"),
    "pipx": ("pyproject.toml", "setup.py", "setup.cfg"),
    "pnpm": ("package.json",),
    "poetry": ("pyproject.toml",),
    "pre-commit": (".pre-commit-config.yaml",),
    "rake": ("Rakefile", "rakefile", "Rakefile.rb"),
    "task": ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml"),
    "tox": ("tox.ini", "pyproject.toml", "setup.cfg"),
    "turbo": ("turbo.json", "package.json"),
    "yarn": ("package.json",),
}

# These run code of the project, which the agent may have written itself.
PROJECT_RUNNERS = (
    frozenset(DEFINITION_FILES)
    | frozenset(INTERPRETERS)
    | frozenset(
        re.findall(
            r"\S+",
            """
            ava bazel cabal conda ctest cypress dart docker dotnet eslint flutter gem go gulp jest lein meson mocha
            mypy ninja nix npx phpunit pipenv playwright podman pylint pytest py.test rspec sbt stack swift terraform uv
            vite vitest webpack zig
            """,
        )
    )
)

LONGEST_SCOPE = 200
# What can make a line more than one command. Quotes are ignored, since a mistake in parsing them would be dangerous.
COMPOUND = re.compile(r"[;&|<>`\x00-\x08\x0a-\x1f\x7f]|\$[({]")
PLAIN_WORD = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./:@+-]*")
VERSION_SUFFIX = re.compile(r"(?<=[A-Za-z])[0-9.]+$")


@dataclass(frozen=True, slots=True)
class PermissionScope:
    """What a lasting answer covers.

    `name` is stored, and `text` is shown to the person; both are empty where only a single answer is possible.
    `warning` is shown before it is allowed always.
    """

    name: str = ""
    text: str = ""
    warning: str = field(default="", compare=False)


NO_SCOPE = PermissionScope()
RUNS_WORKSPACE_CODE = ", which runs code of the workspace, also what the agent writes there"
SCOPES_OF_KINDS = {
    OperationKind.EDIT: PermissionScope("edit", "edits in this workspace"),
    OperationKind.DELETE: PermissionScope("delete", "deleting files in this workspace"),
    OperationKind.MOVE: PermissionScope("move", "moving files in this workspace"),
}


def scope_of_kind(kind: OperationKind) -> PermissionScope:
    return SCOPES_OF_KINDS.get(kind, NO_SCOPE)


def scope_of_tool(name: str) -> PermissionScope:
    """The scope for a tool of which only the name is known."""
    return PermissionScope(f"use {name}", f"every call of {name} in this workspace")


def scope_of_command(command: str, folder: str = "") -> PermissionScope:
    """The scope of a command; `folder` is where it runs, if not in the workspace's own, since it may differ there."""
    words = _split_command(command)
    leading = _leading(words)
    name = " ".join(leading)
    if not name or len(name) > LONGEST_SCOPE:
        return NO_SCOPE
    where = f"in {folder}" if folder else "in this workspace"
    alone = len(leading) == len(words) and _program(leading[-1:]) in SUBCOMMAND_PROGRAMS
    covers = f"`{name}` by itself {where}" if alone else f"every `{name} …` {where}"
    runs = any("/" in word or _program([word]) in PROJECT_RUNNERS for word in leading)
    return PermissionScope(f"run {name}{f' {where}' if folder else ''}", covers, RUNS_WORKSPACE_CODE if runs else "")


def leading_words(command: str) -> Sequence[str]:
    """The words of a simple command that determine what runs; empty where a few words cannot."""
    return _leading(_split_command(command))


def is_compound(command: str) -> bool:
    """Whether a command may be more than one simple command."""
    return not _split_command(command)


def program_of(words: Sequence[str]) -> str:
    """The name of the program, without folder and version; empty where only the shell can tell it."""
    return _program(words)


def _split_command(command: str) -> Sequence[str]:
    """The words of a simple command; empty for any other."""
    if COMPOUND.search(command):
        return ()
    try:
        return shlex.split(command)
    except ValueError:
        return ()


def _leading(words: Sequence[str]) -> Sequence[str]:
    """The words that determine what runs; empty where a few words cannot."""
    program = _program(words)
    first, second = (program,), (program, *words[1:2])
    if not program or program in ARBITRARY_RUNNERS or second in ARBITRARY_RUN_COMMANDS:
        return ()
    for before in (first, second):
        if before in PREFIX_COMMANDS:
            return _with_prefix(words[: len(before)], words[len(before) :])
    if program in INTERPRETERS:
        return _interpreter_words(words, INTERPRETERS[program])
    if _has_acting_option(program, words):
        return ()
    if program in SUBCOMMAND_PROGRAMS and len(words) > 1:
        return _first_plain_words(words, 3 if second in SCRIPT_COMMANDS else 2)
    return words[:1]


def _has_acting_option(program: str, words: Sequence[str]) -> bool:
    """Whether an argument makes an otherwise plain program run others, delete or write."""
    options = ACTING_OPTIONS.get(program, ())
    if program == "git" and len(words) > 1:
        options = (*GIT_ACTING_OPTIONS, *GIT_COMMAND_ACTING_OPTIONS.get(words[1], ()))
    return any(_may_mean(word, option) for word in words[1:] for option in options)


def _may_mean(word: str, option: str) -> bool:
    """Whether a word may be this option, also shortened (`--open` for `--open-files-in-pager`) or joined (`-nO`)."""
    if word.startswith(option):
        return True
    name = word.partition("=")[0]
    if option.startswith("--"):
        return len(name) > len("--") and option.startswith(name)
    return len(option) == len("-O") and word.startswith("-") and not word.startswith("--") and option[1] in name


def _program(words: Sequence[str]) -> str:
    """The name of the program, without folder and version; empty where only the shell can tell it."""
    if not words or not PLAIN_WORD.fullmatch(words[0]):
        return ""
    return VERSION_SUFFIX.sub("", PurePath(words[0]).name.removesuffix(".exe"))


def _with_prefix(before: Sequence[str], others: Sequence[str]) -> Sequence[str]:
    leading = _leading(others)
    return (*before, *leading) if leading else ()


def _interpreter_words(words: Sequence[str], option: str) -> Sequence[str]:
    if option and list(words[1:2]) == [option] and _first_plain_words(words[2:], 1):
        return words[:3]
    return _first_plain_words(words, 2)


def _first_plain_words(words: Sequence[str], count: int) -> Sequence[str]:
    """The first words, if all of them are plain: an option before a command can change what it does."""
    found = words[:count]
    return found if len(found) == count and all(map(PLAIN_WORD.fullmatch, found)) else ()
