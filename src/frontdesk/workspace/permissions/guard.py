"""Looks at the disk for what an agent must not write, move or run unasked, whatever was allowed before.

Two questions are answered. Is a path protected, by its name, by where it leads, or by what its folder is? And has
something that a remembered command obeys changed since the person allowed it: the program or script itself, the file
that says what its words mean, or what git acts on?
"""

import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from pathlib import Path, PurePath

from anyio import to_thread

from frontdesk.errors import Invalid
from frontdesk.workspace.permissions.programs import DEFINED_IN, READERS, READING_GIT
from frontdesk.workspace.permissions.protected import GIT, LINKED, MANY, OURS, REPOSITORY, why_protected
from frontdesk.workspace.permissions.scopes import is_compound, leading_words, program_of
from frontdesk.workspace.roots import LONGEST, Roots

EACH_TIME = "you are asked each time, since {why}"
AGAIN = "you are asked again, since {path} has changed after you allowed this"
MOST_ENTRIES = 5000
MOST_HOOKS = 200
MOST_LOOKED_AT = 200
MOST_BYTES = 200_000
# Disks note a change some milliseconds late, and some in steps as coarse as this.
COARSE_SECONDS = 2.0
# What can stand between the paths in a command line.
BETWEEN = re.compile(r"[\s;&|<>()\"'`=,]+")
SECTION = re.compile(r"\[\s*([\w.-]+)")
# Settings of git that run nothing, whatever they say; of the others a change counts.
INERT = frozenset(
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
RUNS = frozenset(
    re.findall(
        r"\S+",
        """
        askpass attributesfile clean cmd command driver editor external fsmonitor helper hookspath packobjectshook pager
        path process program smudge sshcommand templatedir textconv
        """,
    )
)


@dataclass(frozen=True, slots=True)
class Guard:
    """`own` are folders of Frontdesk's. `local`: the files are on this machine; for others their names have to do."""

    roots: Roots
    own: tuple[Path, ...] = ()
    local: bool = True

    async def of_file(self, given: str, path: Path) -> str:
        """Why a file is written or deleted only when somebody says so each time; `path` is where `given` leads."""
        why = await to_thread.run_sync(self._why, given, path)
        return EACH_TIME.format(why=why) if why else ""

    async def of_move(self, source: tuple[str, Path], target: tuple[str, Path]) -> str:
        """The same for what is moved, with all that is in it."""
        why = await to_thread.run_sync(self._why_moved, source, target)
        return EACH_TIME.format(why=why) if why else ""

    async def of_command(self, command: str, cwd: Path) -> str:
        """The same for a command that names a protected file, unless it is one that only reads."""
        words = leading_words(command)
        git = words[1] if len(words) > 1 and program_of(words[:1]) == "git" else ""
        if not is_compound(command) and (program_of(words[:1]) in READERS or git in READING_GIT):
            return ""
        why = await to_thread.run_sync(self._why_named, command, cwd)
        return EACH_TIME.format(why=why) if why else ""

    def _why_named(self, command: str, cwd: Path) -> str:
        for number, word in enumerate(filter(_is_path, BETWEEN.split(command))):
            path = Path(os.path.normpath(cwd / word))
            # A command can be long; what its names alone say is looked at in all of it.
            look = self.local and number < MOST_LOOKED_AT and len(word) < LONGEST
            why = self._why(str(path), _real(path)) if look else why_protected(self._names(path))
            if why:
                return f"'{self.roots.shown(path)[:200]}' is named, and {why}"
        return ""

    def _why_moved(self, source: tuple[str, Path], target: tuple[str, Path]) -> str:
        if why := self._why(*source) or self._why(*target):
            return why
        inside = _beneath(source[1]) if self.local else ()
        for below in inside:
            names = (*self._names(target[1]), *below)
            if why := why_protected((*self._names(source[1]), *below)) or why_protected(names):
                return f"{'/'.join(below)[:200]} is in it, and {why}"
        return MANY if len(inside) > MOST_ENTRIES else ""

    def _why(self, given: str, path: Path) -> str:
        """By the names that were given, by those that links lead to, and by what is on the disk."""
        literal = Path(os.path.normpath(self.roots.cwd / given))
        if why := why_protected(self._names(literal)) or why_protected(self._names(path)):
            return why
        if any(path.is_relative_to(_real(one)) for one in self.own):
            return OURS
        names = self._names(path)
        return _why_on_disk(path, path.parents[len(names) - 1]) if self.local and names else ""

    def _names(self, path: Path) -> tuple[str, ...]:
        try:
            return self.roots.split(path)[1]
        except Invalid:
            return ()

    async def obeyed(self, command: str, cwd: Path) -> Sequence[Path]:
        """The files that say what a command does; none that are elsewhere."""
        return await to_thread.run_sync(self._obeyed, command, cwd) if self.local else ()

    def _obeyed(self, command: str, cwd: Path) -> Sequence[Path]:
        words = leading_words(command)
        found = list(chain.from_iterable(self._candidates(word, cwd) for word in words))
        if len(words) > 1 and "-m" in words:
            module = cwd.joinpath(*words[-1].split("."))
            found += [module.with_suffix(".py"), module / "__main__.py", module / "__init__.py"]
        if any(program_of([word]) == "git" for word in words):
            found += _git_obeys(cwd)
        return tuple(path for path in dict.fromkeys(found) if os.path.lexists(path))

    def _candidates(self, word: str, cwd: Path) -> Iterator[Path]:
        """The file itself, the program of this name where it is in the workspace, and what says what its words mean."""
        if "/" in word or "." in word:
            yield cwd / word
        for folder in self._upwards(cwd):
            yield folder / "node_modules" / ".bin" / word
            for name in DEFINED_IN.get(program_of([word]), ()):
                yield folder / name
        program = None if "/" in word else shutil.which(word)
        if program is not None and any(_real(Path(program)).is_relative_to(root) for root in self.roots.all):
            yield Path(program)

    def _upwards(self, cwd: Path) -> Iterator[Path]:
        for folder in (cwd, *cwd.parents):
            yield folder
            if folder in self.roots.all:
                return


def _is_path(word: str) -> bool:
    """Not an address, nor a commit of git's by its usual name."""
    return bool(word) and "\0" not in word and "://" not in word and not word.startswith("HEAD")


def _why_on_disk(path: Path, root: Path) -> str:
    """By what is there: a second name, a repository around it, git's settings, or a link of a protected name to it."""
    try:
        found = os.lstat(path)
    except OSError:
        found = None
    if found is not None and stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        return LINKED
    around = path.parents[: len(path.parts) - len(root.parts)]
    if any(_is_file(folder / "HEAD") for folder in around):
        return REPOSITORY
    if _is_in(path, _run_by_git(path.parent)):
        return GIT
    return next((why for why, real in _links(root, path.parent) if _is_in(path, [real])), "")


def _is_in(path: Path, places: Sequence[Path]) -> bool:
    return any(path.is_relative_to(place) for place in places)


def _links(root: Path, cwd: Path) -> Iterator[tuple[str, Path]]:
    """Where links lead that have a protected name, or stand in a protected folder at the top or among git's hooks."""
    for entry in _files_in(root):
        if not (why := why_protected([entry.name])):
            continue
        for path in (entry, *_files_in(entry)):
            if path.is_symlink():
                yield why, _real(path)
    if (found := _repository(cwd)) is not None:
        for hook in _files_in(_common(found[1]) / "hooks"):
            if hook.is_symlink():
                yield GIT, _real(hook)


async def changed_since(paths: Sequence[Path], moment: datetime) -> Path | None:
    """The first of these that is not what it was then, or was put there since."""
    return await to_thread.run_sync(_first_changed, paths, moment.timestamp() - COARSE_SECONDS)


def _first_changed(paths: Sequence[Path], since: float) -> Path | None:
    return next((path for path in paths if _changed_at(path) >= since), None)


def _changed_at(path: Path) -> float:
    """When a file, or the link to it, was last written, renamed or put there; nobody but the system can set this."""
    times = [0.0]
    for look in (os.stat, os.lstat):
        try:
            found = look(path)
        except OSError:
            continue
        # Where a folder stands says nothing: whatever happens beside it changes its time.
        times.append(0.0 if stat.S_ISDIR(found.st_mode) else found.st_ctime)
    return max(times)


def _beneath(folder: Path) -> Sequence[tuple[str, ...]]:
    """All that is in a folder, as names from there; one more than the most where there is too much."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    found = (
        (*PurePath(above).relative_to(folder).parts, name)
        for above, folders, files in os.walk(folder)
        for name in (*folders, *files)
    )
    return list(islice(found, MOST_ENTRIES + 1))


def _git_obeys(cwd: Path) -> Iterator[Path]:
    """What git runs or obeys in the repository that it would find from a folder."""
    found = _repository(cwd)
    if found is None:
        return
    top, folder = found
    yield from (top / ".git", top / ".gitattributes", top / ".gitmodules", cwd / ".gitattributes")
    for base in dict.fromkeys((folder, _common(folder))):
        yield from (path for path in (base / "config", base / "config.worktree") if not _is_inert(_text(path)))
        yield base / "info" / "attributes"
        yield from _files_in(base / "hooks")
    for path in _run_by_git(cwd):
        yield path
        yield from _files_in(path)


def _run_by_git(cwd: Path) -> Sequence[Path]:
    """Files and folders outside the repository's own that its settings have git run or read."""
    found = _repository(cwd)
    if found is None:
        return ()
    top, folder = found
    values: list[str] = []
    for base in dict.fromkeys((folder, _common(folder))):
        for name in ("config", "config.worktree"):
            values += _run_settings(_text(base / name))
    paths = (Path(os.path.normpath(top / word)) for value in values for word in filter(None, BETWEEN.split(value)))
    return [path for path in dict.fromkeys(paths) if path != top and not top.is_relative_to(path)]


def _run_settings(text: str) -> Iterator[str]:
    """The values that are run or read."""
    for section, key, value in _settings(text):
        if section in ("alias", "pager") or key in RUNS:
            yield value.removeprefix('"').removeprefix("!")


def _is_inert(text: str) -> bool:
    """Whether settings can run nothing; then they may change, as they do with each branch that is pushed."""
    return all(key in INERT and section not in ("alias", "pager") for section, key, _ in _settings(text))


def _settings(text: str) -> Iterator[tuple[str, str, str]]:
    """Section, name and value, the first two in small letters; a name alone is one without a value."""
    section = ""
    for line in text.splitlines():
        rest = line.strip()
        if header := SECTION.match(rest):
            section, rest = header[1].lower(), rest.partition("]")[2].strip()
        if rest and rest[0] not in "#;":
            key, _, value = rest.partition("=")
            yield section, key.strip().lower(), value.strip()


def _repository(cwd: Path) -> tuple[Path, Path] | None:
    """The folder at the top and the one with git's own files, as git finds them; both the same for a bare one."""
    for top in (cwd, *cwd.parents):
        dot = top / ".git"
        if _is_folder(dot):
            return top, dot
        if _is_file(dot):
            return top, Path(os.path.normpath(top / _text(dot).partition(":")[2].strip()))
        if _is_file(top / "HEAD") and _is_folder(top / "objects"):
            return top, top
    return None


def _common(folder: Path) -> Path:
    """Where a worktree has what it shares with the others."""
    shared = _text(folder / "commondir").strip()
    return Path(os.path.normpath(folder / shared)) if shared else folder


def _files_in(folder: Path) -> Sequence[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in islice(entries, MOST_HOOKS)]
    except OSError:
        return ()


def _text(path: Path) -> str:
    try:
        if not _is_file(path):
            return ""
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode(errors="replace").replace("\0", "")
    except OSError:
        return ""


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


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
