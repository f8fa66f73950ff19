"""The files for running Frontdesk elsewhere: each names commands and settings that there are."""

from configparser import ConfigParser
from typing import Any

import pytest
import yaml

from frontdesk.settings import Settings, variables
from frontdesk.surfaces.cli.main import command
from tests.support.desk import ROOT

DEPLOY = ROOT / "docs" / "deploy"
KNOWN = {name for field in Settings.model_fields for name in variables(field)}


def test_the_compose_file_starts_commands_that_there_are_with_settings_that_there_are() -> None:
    services: dict[str, Any] = yaml.safe_load(DEPLOY.joinpath("compose.yaml").read_text())["services"]
    ours = {name: service for name, service in services.items() if name != "database"}
    assert {name: service["command"].split("frontdesk ")[-1].strip('"') for name, service in ours.items()} == {
        "desk": "up",
        "worker": "worker",
    }
    for service in ours.values():
        assert {*service["environment"]} <= KNOWN
        assert service["depends_on"] == {"database": {"condition": "service_healthy"}}


@pytest.mark.parametrize(("unit", "word"), [("frontdesk", "up"), ("frontdesk-worker", "worker")])
def test_a_unit_starts_a_command_that_there_is_and_gives_it_time_to_stop(unit: str, word: str) -> None:
    found = ConfigParser(interpolation=None)
    found.optionxform = str  # pyright: ignore[reportAttributeAccessIssue] - how it is told to keep capitals
    found.read(DEPLOY / f"{unit}.service")
    service = found["Service"]
    assert service["ExecStart"].split()[1:] == [word]
    assert word in {name for name in command if not name.startswith("-")}
    assert service["Environment"].split("=")[0] in KNOWN
    assert int(service["TimeoutStopSec"]) > 10
