"""Databases with the schema in them, copied from one that was brought up to date once, as that takes its time."""

import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import anyio

from frontdesk.db.engine import Database
from frontdesk.settings import Settings
from tests.support.postgres import Postgres

FILE = "frontdesk.db"


@dataclass(frozen=True, slots=True)
class Ready:
    """Where the original is."""

    folder: Path

    def in_folder(self, data: Path) -> Path:
        """The folder of a server that has been started before, on SQLite."""
        if not (self.folder / FILE).exists():
            _bring_up_to_date({"FRONTDESK_DATA": self.folder})
        data.mkdir(mode=0o700, parents=True)
        shutil.copyfile(self.folder / FILE, data / FILE)
        return data

    def on(self, server: Postgres) -> str:
        """The address of a new database of this server."""
        if server.original is None:
            url = server.create_database()
            _bring_up_to_date({"FRONTDESK_DATA": self.folder, "FRONTDESK_DATABASE_URL": url})
            server.original = url
        return server.create_database(server.original)


def _bring_up_to_date(values: Mapping[str, object]) -> None:
    async def open_and_close() -> None:
        await (await Database.open(Settings.model_validate(values))).close()

    # In a thread, as the tests' own event loop may be waiting for this.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(anyio.run, open_and_close).result()
