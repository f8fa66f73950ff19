"""Fixtures: installations with pages (the embedded default, and two replicas on PostgreSQL), and a browser."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.support.browsers import open_chromium, window
from tests.support.desk import Desk, frontdesk, open_desk
from tests.support.postgres import Postgres
from tests.support.warm import the_command


@dataclass(frozen=True, slots=True)
class Installation:
    """One or more servers on one database; `settings` are the settings of their start."""

    desks: tuple[Desk, ...]
    data: Path
    settings: dict[str, str]

    @property
    def url(self) -> str:
        return self.desks[0].url

    @property
    def other(self) -> str:
        """Another replica, or the same server if there is only one."""
        return self.desks[-1].url

    def run(self, *words: str) -> str:
        """The command on the same database, in a process of its own, since Playwright's event loop runs in this one."""
        done = frontdesk(*words, data=self.data, program=(str(the_command()),), **self.settings)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    # No longer: while it is open, its event loop runs in this thread, and no test can have a loop of its own.
    with open_chromium() as browser:
        yield browser


@pytest.fixture(scope="module", params=["embedded", pytest.param("replicas", marks=pytest.mark.slow)])
def installation(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Installation]:
    folder = tmp_path_factory.mktemp("installation")
    if request.param == "replicas":
        with replicas(folder, request.getfixturevalue("postgres")) as opened:
            yield opened
        return
    with open_desk(folder / "data") as desk:
        yield Installation((desk,), desk.data, {})


@contextmanager
def replicas(folder: Path, server: Postgres) -> Generator[Installation]:
    """Two servers on one PostgreSQL."""
    settings = {"FRONTDESK_DATABASE_URL": server.create_database()}
    with open_desk(folder / "one", **settings) as one, open_desk(folder / "two", **settings) as two:
        yield Installation((one, two), folder / "cli", settings)


@pytest.fixture
def page(chromium: Browser, installation: Installation) -> Iterator[Page]:
    """A page of the installation; any error in its console fails the test."""
    complaints: list[str] = []
    with window(chromium, installation.url) as context:
        opened = context.new_page()
        opened.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        yield opened
    assert complaints == []


@pytest.fixture(scope="package")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Generator[Installation]:
    """An embedded installation with the data of one day."""
    folder = tmp_path_factory.mktemp("lived-in")
    data = folder / "data"
    done = frontdesk("demo", data=data)
    assert done.returncode == 0, done.stderr
    with open_desk(data) as desk:
        yield Installation((desk,), data, {})
