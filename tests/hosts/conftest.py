"""Fixtures: the host under test, built in on SQLite and on PostgreSQL, and the real Letta server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.hosts.lab import Lab
from tests.support.letta import LettaServer, open_letta
from tests.support.models import open_models
from tests.support.models.application import ModelServer
from tests.support.postgres import Postgres

KEY = "sk-the-right-one"
PASSWORD = "letta-password"
NOBODY_THERE = "http://127.0.0.1:9"
BUILT_IN = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def models() -> Iterator[ModelServer]:
    with open_models(KEY) as server:
        yield server


@pytest.fixture(scope="session")
def letta_models() -> Iterator[ModelServer]:
    with open_models() as server:
        yield server


@pytest.fixture(scope="session")
def letta(
    tmp_path_factory: pytest.TempPathFactory, postgres: Postgres, letta_models: ModelServer
) -> Iterator[LettaServer]:
    """The real Letta server, with a password; one for the whole run, since its start takes long."""
    folder = tmp_path_factory.mktemp("letta")
    with open_letta(folder, postgres.create_database(), letta_models.openai_url, PASSWORD) as server:
        yield server


@pytest.fixture(params=[*BUILT_IN, "letta"])
def lab(request: pytest.FixtureRequest, tmp_path: Path, models: ModelServer) -> Lab:
    if request.param == "letta":
        return _letta(request, tmp_path)
    data: dict[str, object] = {"FRONTDESK_DATA": tmp_path / "data", "FRONTDESK_MODEL": "openai:fake-1"}
    data["FRONTDESK_IMAGE_MODELS"] = "openai:fake-1"
    if request.param == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        data["FRONTDESK_DATABASE_URL"] = server.create_database()

    def thinking_with(url: str, key: str) -> Settings:
        return settings_with(**data, OPENAI_BASE_URL=f"{url}/v1", OPENAI_API_KEY=key)

    return Lab(
        settings=thinking_with(models.url, KEY),
        model=None,
        models=models,
        dead=thinking_with(NOBODY_THERE, KEY),
        bad_key=thinking_with(models.url, "sk-wrong"),
    )


def _letta(request: pytest.FixtureRequest, tmp_path: Path) -> Lab:
    server: LettaServer = request.getfixturevalue("letta")
    models: ModelServer = request.getfixturevalue("letta_models")

    def on(url: str, password: str) -> Settings:
        return settings_with(FRONTDESK_DATA=tmp_path / "data", LETTA_BASE_URL=url, LETTA_SERVER_PASSWORD=password)

    return Lab(
        settings=on(server.url, PASSWORD),
        model="openai-proxy/fake-1",
        models=models,
        dead=on(NOBODY_THERE, PASSWORD),
        bad_key=on(server.url, "wrong"),
    )
