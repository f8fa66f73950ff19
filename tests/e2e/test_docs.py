"""Runs the commands and the notebook of the documentation unchanged."""

import ast
import inspect
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from textwrap import dedent
from types import CodeType
from typing import Any

import anyio
import pytest

from frontdesk.db.schema import metadata
from tests.requirements import shows
from tests.support.desk import ROOT, Desk, clean_environment, frontdesk_here
from tests.support.models import open_models
from tests.support.serving import address_of, listen
from tests.support.warm import warm_command

# The commands in the documentation, pasted into a shell


PAGES = ["README.md", *(f"docs/guide/{page.name}" for page in sorted(ROOT.joinpath("docs/guide").glob("*.md")))]
SECONDS = 120
# In a list a block has the indentation of the list's text. A block with a file's name is the content of that file.
BLOCK = re.compile(r"^( *)```(sh|python)(?: (\S+))?\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def empty(desk: Desk) -> Desk:
    """The module's server with an empty database: every page begins at the beginning."""
    with closing(sqlite3.connect(desk.data / "frontdesk.db", timeout=SECONDS)) as connection, connection:
        for table in metadata.tables:
            connection.execute(f'DELETE FROM "{table}"')
    return desk


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """A folder with the programs that the pages' commands call, beside the usual ones."""
    folder = tmp_path_factory.mktemp("programs")
    if shutil.which("curl") is None:
        _program(folder / "curl", f'exec "{sys.executable}" "{ROOT}/tests/support/curl.py" "$@"')
    _program(folder / "python", f'exec "{sys.executable}" "$@"')
    with warm_command(folder):
        yield folder


@shows("DOCS-RUN")
@shows("KEPT-17")
@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_works(page: str, empty: Desk, programs: Path, tmp_path: Path) -> None:
    text = ROOT.joinpath(page).read_text()
    with listen() as listener:
        own_port = address_of(listener).rpartition(":")[2]
    for _, language, file, block in BLOCK.findall(text):
        port = empty.url.rpartition(":")[2]
        script = dedent(block).replace("3020", port).replace(":8000", f":{own_port}").replace("=8000", f"={own_port}")
        script = script.replace("./dev run", "frontdesk")
        if file:
            tmp_path.joinpath(file).write_text(script)
            continue
        done = run(language, script, empty, programs, tmp_path)
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        assert '"error"' not in done.stdout, done.stdout


# The blocks that no shell here can run, by their first line, each with the reason.
NOT_RUN = {
    "./dev up        # start it, and look at it: http://127.0.0.1:3020/": "does not end, and installs what it needs",
    "./dev up": "does not end, and installs what it needs",
    "pip install .": "installs into the reader's own environment",
    "frontdesk chat Support": "waits for what somebody types",
    "frontdesk worker --concurrency 200": "does not end",
    "PROMPTYOSELF_DB=promptyoself.db frontdesk schedule import": "is for who has such a file",
    "export NEXT_PUBLIC_SUPABASE_URL=https://PROJECT.supabase.co": "needs a project there",
    "export PYTHON_ENVIRONMENT=Production FRONTDESK_PLATFORM_APP_ID=6f2a6b5e-3c1d-4f7b-9a50-1f1d3a0c9e11": (
        "needs an application at Microsoft's"
    ),
    "from frontdesk.agent365.extensions.openai import McpToolRegistrationService": "shows the one line that changes",
    "export FRONTDESK_DATABASE_URL=postgresql://desk:secret@db.internal/desk": "needs that database",
    "export DESK_URL=https://desk.example.com DESK_PASSWORD=letters-and-digits": "needs Docker",
    "python3 -m venv /opt/frontdesk": "changes the machine",
    "export FRONTDESK_EMBEDDINGS=http://127.0.0.1:11434 FRONTDESK_EMBEDDINGS_MODEL=nomic-embed-text": (
        "sets variables for the server, and needs a model server to be of use"
    ),
    "frontdesk letta template Concierge": "needs a Letta server",
    "export LETTA_BASE_URL=http://127.0.0.1:8283": "needs a Letta server",
    'frontdesk agents create Concierge --persona "I am the concierge."': "needs a Letta server",
    "frontdesk letta connect Support      # or an id, several of them, or --all": "needs a Letta server",
    'frontdesk keys create --user ann --name "ann\'s editor"': "is followed by what does not end",
}
COMMANDS = re.compile(r"^ +(\./dev|frontdesk|export|pip|curl|docker|npx|python3|from|[A-Z_]+=\S+ frontdesk) ?")
FENCED = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
# The input and output of a terminal.
TYPED = re.compile(r"^ *```console\n *\$ (.*)$", re.MULTILINE)


@shows("KEPT-17")
def test_every_command_is_run_or_has_a_reason_why_not() -> None:
    found: set[str] = set()
    for page in PAGES:
        inside, text = False, ROOT.joinpath(page).read_text()
        found.update(TYPED.findall(text))
        for line in FENCED.sub("", text).splitlines():
            indented = line.startswith("    ")
            if indented and not inside and COMMANDS.match(line):
                found.add(line.strip())
            inside = indented
    assert found == set(NOT_RUN)


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *ROOT.joinpath("docs").rglob("*.md")], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith("https://"):
            continue
        file, _, heading = target.partition("#")
        path = page.parent / file if file else page
        assert path.exists(), target
        assert not heading or heading in headings(path.read_text()), target


def headings(text: str) -> set[str]:
    """The anchors of a page's headings."""
    found = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def run(language: str, script: str, desk: Desk, programs: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    environment = clean_environment(FRONTDESK_DATA=str(desk.data))
    environment["PATH"] = f"{programs}{os.pathsep}{environment['PATH']}"
    command = ["sh", "-eu", "-c", script] if language == "sh" else [sys.executable, "-c", script]
    return subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def _program(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


# The notebook of the guide, run cell by cell against a real server and a scripted model


NOTEBOOK = ROOT / "docs/guide/memory.ipynb"
MODEL_KEY = "sk-of-the-notebook"
# As with papermill: the reader of the notebook changes the values in this cell.
PARAMETERS = "parameters"


def script(task_id: str) -> str:
    """Instructions for the models: find the task, change it, and report it."""
    steps = [
        {"tool": "search_tasks", "args": {"keyword": "train"}},
        {"text": "Found it. ", "tool": "update_task", "args": {"id": task_id, "status": "in_progress"}},
        {"text": "You are on it."},
    ]
    return f" @@{json.dumps(steps)}@@"


def cells() -> list[tuple[CodeType, list[str]]]:
    """The code of each cell, as a notebook runs it, and its tags."""
    found: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text())["cells"]
    return [
        (
            compile("".join(cell["source"]), cell["id"], "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT),
            cell["metadata"].get("tags", []),
        )
        for cell in found
        if cell["cell_type"] == "code"
    ]


async def executed() -> dict[str, Any]:
    """The values of the notebook's names after its last cell."""
    names: dict[str, Any] = {"__name__": "notebook"}
    for code, tags in cells():
        ran = eval(code, names)
        if inspect.iscoroutine(ran):
            await ran
        if PARAMETERS in tags:
            names["QUESTION"] += script(names["task"]["id"])
    return names


@shows("DOCS-NOTEBOOK")
def test_the_notebook_calls_tools_by_hand_and_by_both_model_apis(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_models(MODEL_KEY) as models:
        given = {
            "MCP_HTTP_URL": f"{desk.url}/mcp/memory",
            "ZMEMORY_API_KEY": frontdesk_here("keys", "create", "--user", "ann", data=desk.data).stdout.strip(),
            "OPENAI_BASE_URL": models.openai_url,
            "OPENAI_API_KEY": MODEL_KEY,
            "ANTHROPIC_BASE_URL": models.anthropic_url,
            "ANTHROPIC_API_KEY": MODEL_KEY,
        }
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        names = anyio.run(executed)
    assert len(names["tools"]) >= 36
    assert (names["openai_said"], names["anthropic_said"]) == ("You are on it.", "You are on it.")
    assert [seen.path for seen in models.seen] == ["/v1/chat/completions"] * 3 + ["/v1/messages"] * 3
    for last in (models.seen[2], models.seen[5]):
        assert json.dumps(last.body).count("Book the train to Lisbon") >= 2, "both tools' answers were fed back"
    assert (names["task"]["status"], names["after"]["status"]) == ("pending", "in_progress")
    listed = frontdesk_here("tasks", "list", "--user", "ann", "--json", data=desk.data).stdout.splitlines()
    assert [(one["id"], one["status"]) for one in map(json.loads, listed)] == [(names["task"]["id"], "in_progress")]


def test_the_notebook_is_kept_without_what_a_run_printed() -> None:
    found = json.loads(NOTEBOOK.read_text())["cells"]
    code = [cell for cell in found if cell["cell_type"] == "code"]
    assert [(cell["outputs"], cell["execution_count"]) for cell in code] == [([], None)] * len(code)
