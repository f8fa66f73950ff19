"""`frontdesk agents`, as one types it."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from typing_extensions import override

from frontdesk.interfaces.cli.main import main
from tests.requirements import shows
from tests.support.desk import Desk, frontdesk, frontdesk_here
from tests.support.terminal import open_terminal


@dataclass(frozen=True, slots=True)
class Done:
    """What a command came to."""

    code: object
    out: str
    err: str


Typed = Callable[..., Done]
# The command is given its words the way the shell does, not as the library would have tests do it.
pytestmark = pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens")


class Person(io.StringIO):
    """Somebody at a terminal, as far as a command can tell."""

    @override
    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One data folder for all: each test names its agents differently."""
    return tmp_path_factory.mktemp("agents") / "data"


@pytest.fixture
def typed(data: Path, desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Runs the command in this process, with a desk among its MCP servers."""
    monkeypatch.setenv("FRONTDESK_DATA", str(data))
    monkeypatch.setenv("FRONTDESK_MCP_SERVERS", json.dumps([{"name": "desk", "url": desk.mcp}]))

    def run(*arguments: str, given: io.StringIO | None = None) -> Done:
        monkeypatch.setattr(sys, "argv", ["frontdesk", "agents", *arguments])
        monkeypatch.setattr(sys, "stdin", given or io.StringIO())
        with pytest.raises(SystemExit) as left:
            main()
        said = capsys.readouterr()
        return Done(left.value.code, said.out, said.err)

    return run


def test_an_agent_is_made_and_deleted_by_whoever_types_its_name(data: Path, typed: Typed) -> None:
    agent_id = frontdesk("agents", "create", "Support", data=data).stdout.strip()
    assert agent_id in typed("list").out
    unasked = typed("delete", "Support")
    assert unasked.code == 2
    assert "add --yes" in unasked.err
    assert "nothing was deleted" in typed("delete", "Support", given=Person("support\n")).err
    with open_terminal("agents", "delete", "Support", data=data) as terminal:
        terminal.until("Type Support to delete it: ")
        terminal.type("Support")
        terminal.until(f"Support ({agent_id}) is deleted.")
        assert terminal.ended() == 0
    assert agent_id not in typed("list").out


@shows("CLI-AGENTS")
def test_agents_are_listed_for_a_script(typed: Typed) -> None:
    agent_id = typed("create", "Scribe", "--description", "Two\nlines").out.strip()
    told = {one["id"]: one for one in map(json.loads, typed("list", "--json").out.splitlines())}
    facts = {"name": "Scribe", "description": "Two\nlines", "model": None, "owner": None, "serves": ""}
    assert told[agent_id] == {"id": agent_id, **facts}


def test_the_keys_that_name_an_agent_end_with_it_and_no_others(data: Path, typed: Typed) -> None:
    agent_id = typed("create", "Holder").out.strip()
    its, others = [
        frontdesk_here("keys", "create", "--agent", agent, data=data).stderr.split()[1].rstrip(":")
        for agent in (agent_id, "*")
    ]
    deleted = typed("delete", "Holder", "--yes").out
    assert deleted == f"Holder ({agent_id}) is deleted.\nIts keys no longer work: {its}\n"
    states = {row.split()[0]: row for row in frontdesk_here("keys", "list", data=data).stdout.splitlines()}
    assert "revoked" in states[its]
    assert "revoked" not in states[others]


@shows("CLI-AGENTS")
def test_an_agent_is_shown_with_its_memory_tools_and_conversations(typed: Typed) -> None:
    made = typed("create", "Clerk", "--description", "Helps", "--persona", "I am kind", "--block", "notes=a=b")
    agent_id = made.out.strip()
    assert typed("attach", "Clerk", "desk", "whoami", "--needs-approval").out == "desk__whoami\n"
    shown = typed("show", "Clerk").out
    rows = [line.split() for line in shown.splitlines()]
    assert ["id", agent_id] in rows
    assert ["description", "Helps"] in rows
    assert ["model", "the", "host's", "default"] in rows
    assert ["persona", "9", "of", "5000", "-", "shared"] in rows
    assert ["human", "0", "of", "5000", "-", "each", "person's", "own"] in rows
    assert ["notes", "3", "of", "5000", "-", "shared"] in rows
    assert ["desk__whoami", "desk", "asks", "first"] in rows
    assert f"conv-{agent_id.removeprefix('agent-')}" in shown
    assert typed("detach", agent_id, "desk__whoami").code == 0
    assert "No tools besides its own." in typed("show", agent_id).out


@shows("KEPT-01")
def test_the_operator_of_an_agent_says_whose_a_memory_block_is_and_writes_each_persons(typed: Typed) -> None:
    typed("create", "Shared", "--block", "human=Speaks French", "--block", "notes=Open at nine", "--owner", "olga")
    assert typed("block", "Shared", "human", "--user", "ann", "Likes tea").out.startswith("human: 9 of")
    assert typed("block", "Shared", "human", "--user", "ann").out == "Likes tea\n"
    assert typed("block", "Shared", "human", "--user", "bob").out == "Speaks French\n"
    typed("block", "Shared", "human", "--start", "Speaks Dutch")
    assert typed("block", "Shared", "human").out == typed("block", "Shared", "human", "--start").out == "Speaks Dutch\n"
    assert "Give --user or --start" in typed("block", "Shared", "human", "--start", "--user", "ann").err
    assert (
        typed("block", "Shared", "notes", "--people-write").out == "notes: shared, and people's turns may change it\n"
    )
    assert typed("block", "Shared", "notes", "--per-person").out == "notes: each person's own\n"
    shown = typed("show", "Shared").out
    assert "It keeps something of its own of: ann" in shown
    assert ["owner", "olga"] in [line.split() for line in shown.splitlines()]


def test_a_memory_block_is_printed_and_written_from_an_argument_or_from_standard_input(typed: Typed) -> None:
    typed("create", "Keeper")
    assert typed("block", "Keeper", "persona").out == "I am Keeper.\n"
    assert typed("block", "Keeper", "human", "- likes tea").out == "human: 11 of 5000 characters\n"
    assert typed("block", "Keeper", "human").out == "- likes tea\n"
    assert typed("block", "Keeper", "human", "-", given=io.StringIO("two\nlines\n")).code == 0
    assert typed("block", "Keeper", "human").out == "two\nlines\n"
    assert "there are: persona, human" in typed("block", "Keeper", "nope").err
    assert typed("block", "Keeper", "human", "x" * 5001).code == 2


def test_a_name_that_two_agents_have_is_refused_with_their_ids(typed: Typed) -> None:
    first, second = typed("create", "Twin").out.strip(), typed("add", "Twin", "--description", "the other").out.strip()
    refused = typed("show", "Twin")
    assert refused.code == 2
    assert f"{first}, {second}" in refused.err
    assert typed("delete", first, "--yes").code == 0
    assert second in typed("show", "Twin").out


def test_where_there_are_no_agents_one_is_told_how_to_make_one(
    tmp_path: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRONTDESK_DATA", str(tmp_path / "empty"))
    assert "agents create NAME" in typed("list").out


def test_what_an_agent_is_called_cannot_draw_on_the_terminal(typed: Typed) -> None:
    typed("create", "Bad\x1b[2J\nname", "--description", "\x1b]0;title\x07two\nlines")
    listed = typed("list").out
    assert "\x1b" not in listed
    assert "Bad name" in listed
    assert "two lines" in listed


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("show", "nobody"), 1, "There is no agent 'nobody'; `frontdesk agents list` shows them"),
        (("delete", "nobody", "--yes"), 1, "There is no agent 'nobody'"),
        (("create", "Novice", "--block", "notes"), 2, "write LABEL=TEXT"),
        (("create", "Novice", "--model", "clever"), 2, "'clever' is not a model"),
        (("create", ""), 2, "1 to 200 characters"),
        (("attach", "ONE", "nowhere", "x"), 2, "There is no MCP server 'nowhere'; there are: desk"),
        (("attach", "ONE", "desk", "nope"), 1, "has no tool 'nope'; it has: "),
        (("detach", "ONE", "nope"), 1, "has no tool 'nope'"),
    ],
)
def test_a_mistake_says_what_to_do(typed: Typed, arguments: tuple[str, ...], code: int, said: str) -> None:
    known = {"ONE": typed("create", "One").out.strip()} if "ONE" in arguments else {}
    done = typed(*(known.get(argument, argument) for argument in arguments))
    assert done.code == code
    assert said in done.err
    assert done.out == ""
