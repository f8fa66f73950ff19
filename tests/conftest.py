"""Fixtures that most tests share: both databases, an open app, a running server."""

import os
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import settings as hypothesis_settings

from frontdesk.app import App, open_app
from frontdesk.db.engine import Database
from frontdesk.settings import Settings
from tests.support.desk import OURS, Desk, open_desk
from tests.support.postgres import Postgres, Ready, open_postgres

pytest_plugins = ("tests.support.sharing",)
# On a busy machine the first example, which fills the caches, takes longer than the 200 ms that Hypothesis allows.
hypothesis_settings.register_profile("frontdesk", deadline=None)
hypothesis_settings.load_profile("frontdesk")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of the environment, and no frontdesk.toml, reaches a test."""
    for name in [name for name in os.environ if name.startswith(OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def logs_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The log setup of one test does not reach the next; and formatting a traceback does not take a second."""
    real = structlog.configure

    def configure(**options: Any) -> None:
        # `capture_logs` would not see the events of a cached logger.
        options["cache_logger_on_first_use"] = False
        real(**options)

    monkeypatch.setattr(structlog, "configure", configure)
    plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    configure(processors=[structlog.processors.add_log_level, plain])
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with open_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Ready:
    return Ready(tmp_path_factory.mktemp("ready"))


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest, tmp_path: Path, ready: Ready) -> Settings:
    """Settings on an empty database with the schema, once for each kind."""
    if request.param == "sqlite":
        return settings_with(FRONTDESK_DATA=ready.in_folder(tmp_path / "data"))
    server: Postgres = request.getfixturevalue("postgres")
    return settings_with(FRONTDESK_DATA=tmp_path / "data", FRONTDESK_DATABASE_URL=ready.on(server))


@pytest.fixture
async def database(settings: Settings) -> AsyncGenerator[Database]:
    opened = await Database.open(settings)
    yield opened
    await opened.close()


@pytest.fixture
async def app(tmp_path: Path, ready: Ready) -> AsyncGenerator[App]:
    """The services on SQLite, with the default settings."""
    async with open_app(settings_with(FRONTDESK_DATA=ready.in_folder(tmp_path / "data"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A server process with the default settings, shared by a module's tests."""
    with open_desk(tmp_path_factory.mktemp("desk") / "data") as running:
        yield running


def settings_with(**values: object) -> Settings:
    return Settings.model_validate(values)
