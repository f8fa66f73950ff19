"""Tests the deployment files: does what they describe on a real PostgreSQL, without the containers."""

import re
import sys
from configparser import ConfigParser
from pathlib import Path
from subprocess import run
from typing import Any
from zipfile import ZipFile

import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder

from frontdesk.interfaces.cli.main import command
from frontdesk.settings import Settings
from frontdesk.settings.model import variable_names
from tests.support.desk import ROOT, frontdesk, frontdesk_here, open_desk
from tests.support.postgres import Postgres
from tests.support.serving import listen

DEPLOY = ROOT / "docs" / "deploy"
KNOWN = {name for field in Settings.model_fields for name in variable_names(field)}
SECONDS = 60


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return yaml.safe_load(DEPLOY.joinpath("compose.yaml").read_text())["services"]


def settings_of(service: dict[str, Any], database: str) -> dict[str, str]:
    """The settings of a service, with the blanks filled in: a free port, and a local database."""
    with listen() as free:
        port = free.getsockname()[1]
    return {
        **service["environment"],
        "FRONTDESK_PORT": str(port),
        "FRONTDESK_DATABASE_URL": database,
        "FRONTDESK_PUBLIC_URL": "http://desk.example.com",
    }


def test_the_services_of_the_compose_file_start_once_there_is_a_key_and_find_themselves_healthy(
    services: dict[str, Any], postgres: Postgres, tmp_path: Path
) -> None:
    desk, data = services["desk"], tmp_path / "data"
    assert {*desk["environment"]} <= KNOWN
    database = postgres.create_database()
    settings, others = settings_of(desk, database), settings_of(desk, database)
    refused = frontdesk(*desk["command"], data=data, **settings)
    assert (refused.returncode, "keys create" in refused.stderr) == (2, True)
    first = re.search(r"docker compose .* run --rm desk (keys create .*)", guide())
    assert first is not None
    assert frontdesk_here(*first[1].split(), data=data, **settings).returncode == 0
    _, *probe = desk["healthcheck"]["test"]
    with open_desk(tmp_path / "one", **settings), open_desk(tmp_path / "two", **others):
        for port in (settings["FRONTDESK_PORT"], others["FRONTDESK_PORT"]):
            words = [sys.executable if word == "python" else word.replace("3020", port) for word in probe]
            assert run(words, timeout=SECONDS, check=False).returncode == 0


def test_the_worker_has_no_port_and_nothing_that_asks_one(services: dict[str, Any]) -> None:
    worker = services["worker"]
    assert worker["command"] == ["worker"]
    assert "worker" in {*command}
    assert (worker["ports"], worker["healthcheck"]) == ([], {"disable": True})
    assert worker["environment"] == services["desk"]["environment"]


@pytest.mark.parametrize(("unit", "word"), [("frontdesk", "up"), ("frontdesk-worker", "worker")])
def test_a_unit_starts_a_command_that_there_is_and_shares_its_folder_with_the_other(unit: str, word: str) -> None:
    found = ConfigParser(interpolation=None)
    found.optionxform = str  # pyright: ignore[reportAttributeAccessIssue] - how it is told to keep capitals
    found.read(DEPLOY / f"{unit}.service")
    service = found["Service"]
    assert service["ExecStart"].split()[1:] == [word]
    assert word in {*command}
    assert service["Environment"].split("=")[0] in KNOWN
    assert int(service["TimeoutStopSec"]) > 10
    assert (service["User"], service["StateDirectory"]) == ("frontdesk", "frontdesk")


def test_what_is_installed_holds_every_file_of_the_package(tmp_path: Path) -> None:
    """As in the image and after `pip install`: the pages need files that are not Python."""
    [wheel] = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with ZipFile(wheel) as archive:
        held = {*archive.namelist()}
    files = (path for path in ROOT.joinpath("src/frontdesk").rglob("*") if path.is_file() and path.suffix != ".pyc")
    ours = {str(path.relative_to(ROOT / "src")) for path in files}
    assert "frontdesk/interfaces/web/templates/base.html" in ours
    assert ours <= held


def test_the_image_copies_what_there_is() -> None:
    lines = DEPLOY.joinpath("Dockerfile").read_text().splitlines()
    copied = [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]
    assert copied
    assert all(ROOT.joinpath(name).exists() for name in copied)


def guide() -> str:
    return ROOT.joinpath("docs/guide/operate.md").read_text()
