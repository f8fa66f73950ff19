"""The scheduler's stores on an empty database, once for each kind."""

import pytest

from frontdesk.db.engine import Database
from tests.stores.schedule.lab import Lab


@pytest.fixture
def lab(database: Database) -> Lab:
    return Lab(database)
