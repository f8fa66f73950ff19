"""An operation that declares a command is one: its fields are the options, and its answer is printed."""

import json

import pytest
from cyclopts import App as Command

from frontdesk.app import App
from frontdesk.interfaces.cli.operation_commands import add_operation_commands
from frontdesk.operations import BoundOperation
from tests.support.greeting import GREET


def greeting_alone(app: App) -> list[BoundOperation]:
    return [app.bind(GREET, app)]


def test_one_declaration_is_a_command(
    capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRONTDESK_DATA", str(tmp_path_factory.mktemp("commands") / "data"))
    root = Command(name="frontdesk", result_action="return_value")
    monkeypatch.setattr(App, "operations", greeting_alone)
    add_operation_commands(root, [GREET])
    root(["people", "greet", "Ann", "--times", "2", "--user", "dora"])
    assert capsys.readouterr().out == "Hello Ann! Hello Ann! (to dora)\n"
    root(["people", "greet", "Ann", "--json"])
    assert json.loads(capsys.readouterr().out) == {"words": "Hello Ann!"}
    root(["people", "greet", "--help"])
    shown = capsys.readouterr().out
    assert "Greet somebody." in shown
    assert "How often." in shown
