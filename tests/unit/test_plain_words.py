"""Old names and metaphors do not come back: the words of decision 0026, searched for in every file that git tracks.

Prose and identifiers have lists of their own, since `floor` is a layer in prose and a function in `math.floor`. A word
that is meant literally, or is part of a contract, is allowed below.
"""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest

from tests.support.desk import ROOT

SUFFIXES = {".py", ".md", ".html", ".js", ".css", ".toml", ".yaml", ".yml", ".ipynb", ".svg", ".service", ""}
# The page and the test that list the old words, and texts that other people wrote.
NOT_READ = (
    "docs/decisions/0026-",
    "tests/unit/test_plain_words.py",
    "src/frontdesk/embedding/model/",
    "src/frontdesk/interfaces/web/static/vendor/",
    "LICENSE",
)
DATABASE = ("src/frontdesk/db/",)


@dataclass(frozen=True)
class OldWord:
    """`pattern` matches the whole word, `instead` says what to write; what `allowed` matches has another sense."""

    pattern: str
    instead: str
    allowed: str = r"(?!)"
    paths: Sequence[str] = ()
    """Beginnings of paths in which the word is allowed."""


# Space for something, and the rooms and walks of the demo and of examples.
SPACE = (
    r"((mak|tak|leav|ha|giv|find|keep|need)\w*|there (is|was)) (\w+ ){0,3}room|(no|of|more|without|than|made) room"
    r"|room (to|for|is|left|takes)|meeting rooms?|Room \{|MEETING_ROOMS"
)
ACTIVITY = r"a walk, an evening|The walk along"
# The least that an answer can cost: what a bench compares with.
BENCHES = ("bench/", "training/", "docs/reference/measured.md")
# A column of the journal and a label of its metrics.
SURFACE = r"[`\"'.{,]surface[`\"',=|]|\.surface\b|surface ="
# Columns and a table keep their names: a migration would be the only gain.
LANE = r"(INTO|FROM|UPDATE|ANALYZE|SELECT|BY|lanes) \S*lanes?\b.*|[`\"'.:(]lanes?[`\"',)]|\blane,|\blanes\."

PROSE = [
    # The scope, and a name of the report on erased records.
    OldWord(r"houses?", "installation", r'house:admin|house rules|"house"'),
    OldWord(r"doorsteps?", "Host and Origin check"),
    OldWord(r"doors?", "interface, endpoint, socket", r"--door\b"),
    OldWord(r"rooms?", "package, capability, service", SPACE),
    OldWord(r"surfaces?", "interface", SURFACE),
    OldWord(r"floors?", "layer", paths=BENCHES),
    OldWord(r"(the|a|each|every|these|this|three|four|five) walks?", "request trace, wrapper", ACTIVITY),
    OldWord(r"lanes?", "queue (schedules), lock (turns)", LANE, DATABASE),
    OldWord(r"shel(f|ves)", "cache"),
    OldWord(r"bells?", "notifier"),
    OldWord(r"turnstiles?|knockers?|porch|lobby", "lock, socket notifier, server, endpoint"),
    OldWord(r"rosters?", "registry, directory"),
    OldWord(r"(the|a|no) gate", "authentication middleware"),
    OldWord(r"errands?", "background call, sign-in state"),
    OldWord(r"deeds?", "request, action"),
    OldWord(r"(whoever|who) sits|sits (here|at)", "calls from this machine"),
    OldWord(
        r"whoever (looks|asks|calls|runs)|(of|by|to|for|as|with|to|prove|tell) who asks",
        "the caller, the reader, the operator",
    ),
    OldWord(r"what is said (in|there|of|then|back)|the same, for what", "the text, the message"),
]

IDENTIFIERS = [
    OldWord(r"houses?", "installation"),
    # `door` is the parameter behind the option `--door`.
    OldWord(r"doorstep|doors?", "endpoint, path, socket", paths=("src/frontdesk/interfaces/cli/main.py",)),
    OldWord(r"rooms?", "services", r"(?i)make_room|meeting_room|has_room|note_room"),
    OldWord(r"visit", "context"),
    OldWord(r"turnstile|shelf|bell|knocker|roster|porch|lobby|hall", "lock, cache, notifier, registry, server"),
    OldWord(r"errands?|deeds?", "calls, state, request"),
    OldWord(r"scene|ear", "state, builder"),
    OldWord(r"step_in|walls", "set_person"),
]

# Names of classes that said nothing, or said it in a picture; the first list is for the product alone.
OLD_CLASSES = frozenset(
    re.findall(
        r"\w+",
        """
        Aside Asked Asking Begin Broken Cast Calling Concerned Discovered Drawn Elsewhere Ending Entered Entrance
        Erased
        Excluded Executing Facts Feeling Finding Following Forgotten Forward Forwards Found Given Gone Handed
        Here Hosted Importing InPlace Inlet Issued Kept Keyring LiveSession Looking Looks Lost Made MemoryRoom
        Mind Named Naming Near Neighbours News Noted Odds Opened Outlet Parcel Past PastListed PastStore
        PastWanted Pen Permitted Piece Places Possession Pulse Ran Reach Recall Remembered Repeating Restarts
        Returned Said Screen Selecting Senses Serving Settled Shown Sight Speech Spent Spot Standing Stands
        Summed Talk TalkStore Thing Tidings Told Toolbox Traits Trouble Turned Underway Unfit Unheard Unread
        Verified Waiting Waking Wanted Watched Way WentWrong Whose Wish Working WorkspaceRoom
        """,
    )
)
OLD_CLASSES_EVERYWHERE = frozenset(
    re.findall(
        r"\w+",
        """
        Bell Deed Door Doorstep Ear Errand Errands Flight Gate Hall Heard House Jar Knocker Lane Lobby Mine Performance
        Porch Room Roster RosterStore Scene Shelf Shift Stretches Straight Turnstile Visit Walk
        """,
    )
)
OLD_MODULES = frozenset(
    re.findall(
        r"\w+", "making given hush whose asked told looking doing walk walls doorstep hall gate bell turnstile shelf"
    )
)

WORD_OF_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def tracked() -> Iterator[tuple[str, str]]:
    """(path, text) of the files that git tracks and that are read here."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for path in filter(None, listed.split("\0")):
        file = ROOT / path
        if PurePosixPath(path).suffix in SUFFIXES and not path.startswith(NOT_READ) and file.is_file():
            yield path, file.read_text()


def old_words(path: str, text: str) -> list[str]:
    """What is wrong with the words of one file, a line for each."""
    wrong = list(_old_prose(path, text))
    if path.endswith(".py"):
        wrong += [*_old_identifiers(path, text), *_old_classes(path, text)]
        if PurePosixPath(path).stem in OLD_MODULES and path.startswith("src/"):
            wrong.append(f"{path}: name the module after what is in it")
    return wrong


def _old_prose(path: str, text: str) -> Iterator[str]:
    for number, line in _prose(path, text):
        for word in PROSE:
            if path.startswith(tuple(word.paths)):
                continue
            for found in re.finditer(rf"(?<![\w/-])({word.pattern})(?![\w/])", line, re.IGNORECASE):
                if not any(free.start() <= found.start() < free.end() for free in re.finditer(word.allowed, line)):
                    yield f"{path}:{number}: write {word.instead!r} instead of {found[0]!r}: {line.strip()[:100]}"


def _prose(path: str, text: str) -> Iterator[tuple[int, str]]:
    """The numbered lines that people read. In tests strings are data, and the name of a test is a sentence."""
    if not path.endswith(".py"):
        yield from enumerate(text.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_docstring = token.string.startswith(('"""', 'r"""'))
        is_string = token.type == tokenize.STRING and (is_docstring or not path.startswith("tests/"))
        if token.type == tokenize.COMMENT or is_string:
            yield from enumerate(token.string.splitlines(), token.start[0])
        elif token.type == tokenize.NAME and token.string.startswith("test_"):
            yield token.start[0], token.string.replace("_", " ")


def _old_identifiers(path: str, text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        imports_tests = token.line.startswith("from tests.")
        if token.type != tokenize.NAME or token.string.startswith("test_") or imports_tests:
            continue
        words = "_".join(WORD_OF_NAME.findall(token.string)).lower()
        for word in IDENTIFIERS:
            found = re.search(rf"(?<![a-z])({word.pattern})(?![a-z])", words)
            if found and not re.search(word.allowed, token.string) and not path.startswith(tuple(word.paths)):
                yield f"{path}:{token.start[0]}: {token.string}: name it {word.instead!r}"


def _old_classes(path: str, text: str) -> Iterator[str]:
    old = OLD_CLASSES | OLD_CLASSES_EVERYWHERE if path.startswith("src/") else OLD_CLASSES_EVERYWHERE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and node.name in old:
            yield f"{path}:{node.lineno}: class {node.name} has one of the old names"


def test_no_file_uses_an_old_word() -> None:
    files = dict(tracked())
    wrong = [line for path, text in files.items() for line in old_words(path, text)]
    assert not wrong, "\n".join(wrong)
    assert {"README.md", "docs/guide/start.md", "src/frontdesk/app.py", "bench/__main__.py"} < set(files)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/frontdesk/app.py", '"""Every service of the house."""\n'),
        ("src/frontdesk/app.py", "# What each lane is due for.\n"),
        ("src/frontdesk/app.py", "def open_door() -> None: ...\n"),
        ("src/frontdesk/app.py", "class Doorstep: ...\n"),
        ("src/frontdesk/app.py", "class Told: ...\n"),
        ("src/frontdesk/app.py", "memoryRoom = 1\n"),
        ("src/frontdesk/memory/told.py", ""),
        ("tests/unit/test_x.py", "class House: ...\n"),
        ("docs/guide/start.md", "The same at every door.\n"),
        ("README.md", "| room | state |\n"),
        ("src/frontdesk/interfaces/web/templates/a.html", "<p>For whoever sits at this machine.</p>\n"),
    ],
)
def test_an_old_word_is_found(path: str, text: str) -> None:
    assert old_words(path, text)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/frontdesk/app.py", 'SCOPE = "house:admin"\n'),
        ("src/frontdesk/app.py", "import math\nmath.floor(1.5)\n"),
        ("src/frontdesk/app.py", "# Old answers make room for new ones.\n"),
        ("docs/reference/cli.md", "`frontdesk mcp --door memory`\n"),
        ("tests/unit/test_x.py", "class Told: ...\n"),
        ("src/frontdesk/db/schema.py", "# The lanes of the queue.\n"),
    ],
)
def test_a_contract_and_another_sense_are_allowed(path: str, text: str) -> None:
    assert old_words(path, text) == []
