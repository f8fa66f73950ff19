"""The notebook of the guide, run cell by cell against a real server and a scripted model."""

import ast
import inspect
import json
from types import CodeType
from typing import Any

import anyio
import pytest

from tests.requirements import shows
from tests.support.desk import ROOT, Desk, frontdesk_here
from tests.support.models import open_models

NOTEBOOK = ROOT / "docs/guide/memory.ipynb"
MODEL_KEY = "sk-of-the-notebook"
# As papermill has it: what stands in this cell is for the reader of the notebook to change.
PARAMETERS = "parameters"


def script(task_id: str) -> str:
    """What the models are to do: look for the task, change it, and say so."""
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
    """What the notebook's names stand for after its last cell."""
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
