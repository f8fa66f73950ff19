"""Finds what an agent must not write, move or run unless the person allows it each time.

It answers two questions. Is a path protected by its name, by the target of its links, or by its folder? And has
anything that defines a remembered command changed since the person allowed it: the program or script itself, the file
that defines what its words mean, or what git acts on?
"""

import os
import re
import shlex
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from glob import iglob
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import Any, cast

from anyio import to_thread

from frontdesk.coding.command_scopes import (
    DEFINITION_FILES,
    READING_GIT_COMMANDS,
    READING_PROGRAMS,
    is_compound,
    leading_words,
    program_of,
)
from frontdesk.coding.paths import LONGEST_PATH, WorkspaceRoots
from frontdesk.coding.protected_names import GIT, HOOKS, LINKED, OURS, PROGRAMS, REPOSITORY, TOO_MANY, why_protected
from frontdesk.errors import Invalid

ASKED_EACH_TIME = "you are asked each time, since {why}"
ASKED_AGAIN = "you are asked again, since {path} has changed after you allowed this"
MOST_ENTRIES = 5000
MOST_HOOKS = 200
MOST_PATHS = 200
MOST_BYTES = 200_000
# Disks record a change some milliseconds late, and some in steps as coarse as this.
TIMESTAMP_GRAIN_SECONDS = 2.0
# Separators of the paths in a command line.
WORD_BREAKS = re.compile(r"[\s;&|<>()\"'`=,]+")
# Separators of the commands of a line.
COMMAND_BREAKS = re.compile(r"&&|\|\||[;|\n]")
GIT_NAMED = re.compile(r"\bgit\b")
# A part of a path that begins with a dot and has a wildcard.
HIDDEN_PATTERN = re.compile(r"(?:^|/)\.[^/]*[*?\[]")
MOST_PATTERNS = 20
LARGEST_INDEX = 50_000_000
# An entry of git's index for a repository in the repository: its mode, 12 bytes, a hash, flags, and the path.
INNER_REPOSITORY = re.compile(
    rb"\x00\x00\xe0\x00.{32}(?:[\x00-\x3f\x80-\xbf].|[\x40-\x7f\xc0-\xff]...)(?P<name>[^\x00]+)\x00", re.DOTALL
)
SECTION_HEADER = re.compile(r"\[\s*([\w.-]+)")
# Settings of git that run nothing, whatever their value; a change of any other setting counts.
INERT_SETTINGS = frozenset(
    re.findall(
        r"\S+",
        """
        active autocrlf autosetuprebase autosetupremote bare default defaultbranch description email eol fetch ff
        filemode gpgsign ignorecase logallrefupdates merge name precomposeunicode prune push pushremote pushurl
        quotepath rebase remote repositoryformatversion safecrlf signingkey symlinks tagopt ui url
        """,
    )
)
# Settings whose values are run, or read as further settings.
RUN_SETTINGS = frozenset(
    re.findall(
        r"\S+",
        """
        askpass attributesfile clean cmd command driver editor external fsmonitor helper hookspath packobjectshook pager
        path process program smudge sshcommand templatedir textconv
        """,
    )
)


@dataclass(frozen=True, slots=True)
class PathGuard:
    """Checks paths, moves, commands and arguments for protected files.

    `own` are Frontdesk's own folders. `local` is true where the files are on this machine; others are judged by name.
    """

    roots: WorkspaceRoots
    own: tuple[Path, ...] = ()
    local: bool = True

    async def check_file(self, text: str, path: Path) -> str:
        """Why a change of this file needs an answer each time; empty where it does not. `path` is `given`, resolved."""
        why = await to_thread.run_sync(self._path_reason, text, path)
        return ASKED_EACH_TIME.format(why=why) if why else ""

    async def check_move(self, source: tuple[str, Path], target: tuple[str, Path]) -> str:
        """Like `check_file`, for a file or folder that is moved, with everything in it."""
        why = await to_thread.run_sync(self._move_reason, source, target)
        return ASKED_EACH_TIME.format(why=why) if why else ""

    async def check_command(self, command: str, cwd: Path) -> str:
        """Like `check_file`, for a command that names a protected file, unless the command only reads."""
        if all(_only_reads(part) for part in COMMAND_BREAKS.split(command)):
            return ""
        why = await to_thread.run_sync(self._command_reason, command, cwd)
        return ASKED_EACH_TIME.format(why=why) if why else ""

    async def check_arguments(self, arguments: Mapping[str, Any]) -> str:
        """Like `check_file`, for a tool of an MCP server, where an argument is the path of a protected file."""
        texts = [text.removeprefix("file://") for text in _argument_texts(arguments) if _can_be_path(text)]
        why = await to_thread.run_sync(self._words_reason, texts, self.roots.cwd)
        return ASKED_EACH_TIME.format(why=why) if why else ""

    def _command_reason(self, command: str, cwd: Path) -> str:
        git = GIT_NAMED.search(command) is not None
        words = [word for word in _command_words(command) if _is_path(word, git=git)]
        # A program outside the workspace is run, and not written.
        first = next(iter(WORD_BREAKS.split(command.lstrip())), "")
        named = [word for word in words if word != first or not self._is_elsewhere(cwd / word)]
        return self._words_reason([*named, *(self._matching(words, cwd) if self.local else ())], cwd, runs=True)

    def _words_reason(self, words: Sequence[str], cwd: Path, *, runs: bool = False) -> str:
        for number, word in enumerate(words):
            path = Path(os.path.normpath(cwd / word))
            # In a long command, only the first words are looked up on the disk; names are checked in all of it.
            look = self.local and number < MOST_PATHS and len(word) < LONGEST_PATH
            why = self._path_reason(str(path), _resolve_links(path)) if look else self._name_reason(path)
            why = why or (why_protected(path.parts) if self._is_elsewhere(path) else "")
            # A command that runs a program also names it, which is allowed.
            if why and not (runs and why == PROGRAMS):
                return f"'{self.roots.display(path)[:200]}' is named, and {why}"
        return ""

    def _matching(self, words: Sequence[str], cwd: Path) -> Sequence[str]:
        """The paths to which a shell expands words such as `.gi?/config`."""
        hidden = [word for word in words if HIDDEN_PATTERN.search(word)][:MOST_PATTERNS]
        # Not `Path.glob`, which accepts no pattern that begins at the root.
        found = (islice(iglob(word, root_dir=cwd), MOST_PATHS) for word in hidden)  # noqa: PTH207
        return list(chain.from_iterable(found))

    def _is_elsewhere(self, path: Path) -> bool:
        return not any(Path(os.path.normpath(path)).is_relative_to(root) for root in self.roots.all)

    def _move_reason(self, source: tuple[str, Path], target: tuple[str, Path]) -> str:
        if why := self._path_reason(*source) or self._path_reason(*target):
            return why
        inside = _paths_beneath(source[1]) if self.local else ()
        for below in inside:
            if why := self._name_reason(source[1].joinpath(*below)) or self._name_reason(target[1].joinpath(*below)):
                return f"{'/'.join(below)[:200]} is in it, and {why}"
        for why, place in self._places(source[1], target[1]) if self.local else ():
            if place.is_relative_to(source[1]) or place.is_relative_to(target[1]):
                return f"{self.roots.display(place)[:200]} is in it, and {why}"
        return TOO_MANY if len(inside) > MOST_ENTRIES else ""

    def _path_reason(self, text: str, path: Path) -> str:
        """Checks the given names, the names to which links lead, and what is on the disk."""
        literal = Path(os.path.normpath(self.roots.cwd / text))
        if why := self._name_reason(literal) or self._name_reason(path):
            return why
        for why, place in self._places(path):
            if path.is_relative_to(place):
                return why
        names = self._names(path)
        return _disk_reason(path, path.parents[len(names) - 1]) if self.local and names else ""

    def _name_reason(self, path: Path) -> str:
        try:
            root, names = self.roots.split(path)
        except Invalid:
            return ""
        return why_protected(names, root.name)

    def _places(self, *paths: Path) -> Iterator[tuple[str, Path]]:
        """Files and folders that are protected under any name, as far as they matter to these paths."""
        yield from ((OURS, _resolve_links(one)) for one in self.own)
        for path in paths if self.local else ():
            if names := self._names(path):
                yield from ((GIT, place) for place in _run_by_git(path.parent))
                yield from _protected_link_targets(path.parents[len(names) - 1], path.parent)

    def _names(self, path: Path) -> tuple[str, ...]:
        try:
            return self.roots.split(path)[1]
        except Invalid:
            return ()

    async def defining_files(self, command: str, cwd: Path) -> Sequence[Path]:
        """The files that define what a command does; empty where the files are on another machine."""
        return await to_thread.run_sync(self._defining_files, command, cwd) if self.local else ()

    def _defining_files(self, command: str, cwd: Path) -> Sequence[Path]:
        words = leading_words(command)
        found = list(chain.from_iterable(self._candidates(word, cwd) for word in words))
        if len(words) > 1 and "-m" in words:
            names = words[-1].split(".")
            for module in (cwd.joinpath(*names[:count]) for count in range(1, len(names) + 1)):
                found += [module.parent / f"{module.name}.py", module / "__main__.py", module / "__init__.py"]
        if any(program_of([word]) == "git" for word in words):
            found += _files_git_obeys(cwd)
        return tuple(path for path in dict.fromkeys(found) if os.path.lexists(path))

    def _candidates(self, word: str, cwd: Path) -> Iterator[Path]:
        """The file itself, a program of this name in the workspace, and the files that define what its words mean."""
        if "/" in word or "." in word:
            yield cwd / word
        # The files that Python and Node run for a folder, or for a name without its suffix.
        yield from (cwd / f"{word}{end}" for end in ("/__main__.py", "/index.js", "/package.json", ".js"))
        for folder in self._upwards(cwd):
            yield folder / "node_modules" / ".bin" / word
            for name in DEFINITION_FILES.get(program_of([word]), ()):
                yield folder / name
        program = None if "/" in word else shutil.which(word)
        if program is not None and any(_resolve_links(Path(program)).is_relative_to(root) for root in self.roots.all):
            yield Path(program)

    def _upwards(self, cwd: Path) -> Iterator[Path]:
        for folder in (cwd, *cwd.parents):
            yield folder
            if folder in self.roots.all:
                return


def _command_words(command: str) -> Sequence[str]:
    """The words of a command line, with and without its quotes."""
    try:
        bare = shlex.split(command)
    except ValueError:
        bare = []
    return [*WORD_BREAKS.split(command), *(part for word in bare for part in WORD_BREAKS.split(word))]


def _only_reads(command: str) -> bool:
    words = leading_words(command)
    git = words[1] if len(words) > 1 and program_of(words[:1]) == "git" else ""
    return not is_compound(command) and (program_of(words[:1]) in READING_PROGRAMS or git in READING_GIT_COMMANDS)


def _is_path(word: str, *, git: bool) -> bool:
    """Not an address, not a git commit by its usual name, and not the program `head`."""
    return (
        bool(word)
        and word != "head"
        and "\0" not in word
        and "://" not in word
        and not (git and word.startswith("HEAD"))
    )


def _argument_texts(value: object, depth: int = 8) -> Iterator[str]:
    """Every text in arguments, down to a depth."""
    match value:
        case str():
            yield value
        case dict() if depth:
            for one in cast("dict[str, object]", value).values():
                yield from _argument_texts(one, depth - 1)
        case list() if depth:
            for one in cast("list[object]", value):
                yield from _argument_texts(one, depth - 1)
        case _:
            pass


def _can_be_path(text: str) -> bool:
    return 0 < len(text) < LONGEST_PATH and text.isprintable() and "://" not in text.removeprefix("file://")


def _disk_reason(path: Path, root: Path) -> str:
    """Checks the disk: a second hard link, or a repository around the path."""
    try:
        found = os.lstat(path)
    except OSError:
        found = None
    if found is not None and stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        return LINKED
    around = path.parents[: len(path.parts) - len(root.parts)]
    return REPOSITORY if any(_is_file(folder / "HEAD") for folder in around) else ""


def _protected_link_targets(root: Path, cwd: Path) -> Iterator[tuple[str, Path]]:
    """The targets of links that have a protected name, or are in a protected folder at the top or in git's hooks."""
    for entry in _files_in(root):
        if not (why := why_protected([entry.name])):
            continue
        for path in (entry, *_files_in(entry)):
            if path.is_symlink():
                yield why, _resolve_links(path)
    if (found := _repository(cwd)) is not None:
        for hook in _files_in(_common_git_folder(found[1]) / "hooks"):
            if hook.is_symlink():
                yield GIT, _resolve_links(hook)


async def changed_since(paths: Sequence[Path], moment: datetime) -> Path | None:
    """The first of these files that was changed or created since."""
    return await to_thread.run_sync(_first_changed, paths, moment.timestamp() - TIMESTAMP_GRAIN_SECONDS)


def _first_changed(paths: Sequence[Path], since: float) -> Path | None:
    return next((path for path in paths if _changed_at(path) >= since), None)


def _changed_at(path: Path) -> float:
    """When a file, or the link to it, was last written, renamed or created; only the system can set this time."""
    times = [0.0]
    for look in (os.stat, os.lstat):
        try:
            found = look(path)
        except OSError:
            continue
        # A folder's time says nothing: it changes with any entry.
        times.append(0.0 if stat.S_ISDIR(found.st_mode) else found.st_ctime)
    return max(times)


def _paths_beneath(folder: Path) -> Sequence[tuple[str, ...]]:
    """Everything in a folder, as names relative to it; one more than the limit where there is too much."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    found = (
        (*PurePath(above).relative_to(folder).parts, name)
        for above, folders, files in os.walk(folder)
        for name in (*folders, *files)
    )
    return list(islice(found, MOST_ENTRIES + 1))


def _files_git_obeys(cwd: Path, within: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """What git runs or obeys in the repository around a folder, and in the repositories inside that."""
    found = _repository(cwd)
    if found is None or found[0] in within:
        return
    top, folder = found
    yield from (top / ".git", top / ".gitattributes", top / ".gitmodules", cwd / ".gitattributes")
    for base in dict.fromkeys((folder, _common_git_folder(folder))):
        yield from (path for path in (base / "config", base / "config.worktree") if not _is_inert(_read_text(path)))
        yield base / "info" / "attributes"
        yield from _files_in(base / "hooks")
    for path in (*_run_by_git(cwd), *(one for one in _files_in(top) if why_protected([one.name]) == HOOKS)):
        yield path
        yield from _files_in(path)
    for place in _inner_repositories(top, folder):
        yield from _files_git_obeys(top / place, within | {top})


def _inner_repositories(top: Path, folder: Path) -> Sequence[str]:
    """The repositories in a repository, by its index and its list of submodules; git reads the status of each."""
    listed = (value for _, key, value in _settings(_read_text(top / ".gitmodules")) if key == "path")
    found = (
        match["name"].decode(errors="surrogateescape")
        for match in INNER_REPOSITORY.finditer(_read_bytes(folder / "index"))
    )
    return list(dict.fromkeys(islice(chain(listed, found), MOST_HOOKS)))


def _run_by_git(cwd: Path) -> Sequence[Path]:
    """Files and folders outside the repository's own that its settings have git run or read."""
    found = _repository(cwd)
    if found is None:
        return ()
    top, folder = found
    # Paths to run are relative to the top folder; paths of included settings to the file that includes them.
    texts = [
        (_read_text(base / name), base)
        for base in dict.fromkeys((folder, _common_git_folder(folder)))
        for name in ("config", "config.worktree")
    ]
    paths: dict[Path, None] = {}
    while texts:
        text, base = texts.pop()
        for value, included in _run_settings(text):
            for word in filter(None, WORD_BREAKS.split(value)):
                path = Path(os.path.normpath((base if included else top) / word))
                if path != top and not top.is_relative_to(path) and path not in paths and len(paths) < MOST_PATHS:
                    paths[path] = None
                    texts += [(_read_text(path), path.parent)] if included else []
    return list(paths)


def _run_settings(text: str) -> Iterator[tuple[str, bool]]:
    """The values that are run or read, and whether they are paths of included settings."""
    for section, key, value in _settings(text):
        included = section in ("include", "includeif") and key == "path"
        if section in ("alias", "pager") or key in RUN_SETTINGS:
            yield value.removeprefix('"').removeprefix("!"), included


def _is_inert(text: str) -> bool:
    """Whether none of the settings can run anything; such settings may change, as each new branch changes them."""
    return all(key in INERT_SETTINGS and section not in ("alias", "pager") for section, key, _ in _settings(text))


def _settings(text: str) -> Iterator[tuple[str, str, str]]:
    """Section, name and value of each setting, the first two in lower case."""
    section = ""
    for line in text.splitlines():
        rest = line.strip()
        if header := SECTION_HEADER.match(rest):
            section, rest = header[1].lower(), rest.partition("]")[2].strip()
        if rest and rest[0] not in "#;":
            key, _, value = rest.partition("=")
            yield section, key.strip().lower(), value.strip()


def _repository(cwd: Path) -> tuple[Path, Path] | None:
    """The top folder of the repository and its git folder, as git finds them; the same folder for a bare repository."""
    for top in (cwd, *cwd.parents):
        dot = top / ".git"
        if _is_folder(dot):
            return top, dot
        if _is_file(dot):
            return top, Path(os.path.normpath(top / _read_text(dot).partition(":")[2].strip()))
        if _is_file(top / "HEAD") and _is_folder(top / "objects"):
            return top, top
    return None


def _common_git_folder(folder: Path) -> Path:
    """The git folder that a worktree shares with others."""
    shared = _read_text(folder / "commondir").strip()
    return Path(os.path.normpath(folder / shared)) if shared else folder


def _files_in(folder: Path) -> Sequence[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in islice(entries, MOST_HOOKS)]
    except OSError:
        return ()


def _read_text(path: Path) -> str:
    return _read_bytes(path, MOST_BYTES).decode(errors="replace").replace("\0", "")


def _read_bytes(path: Path, most: int = LARGEST_INDEX) -> bytes:
    try:
        if not _is_file(path):
            return b""
        with path.open("rb") as file:
            return file.read(most)
    except OSError:
        return b""


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _resolve_links(path: Path) -> Path:
    return Path(os.path.realpath(path))
