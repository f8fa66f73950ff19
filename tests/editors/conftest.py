"""Fixtures: a work folder, and a home for a client that keeps files in it."""

from pathlib import Path

import pytest

from tests.support.postgres import Ready


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "old.txt").write_text("by the person\n")
    return folder


@pytest.fixture
def home(tmp_path: Path, ready: Ready) -> Path:
    """Its folder `data` is Frontdesk's."""
    return ready.in_folder(tmp_path / "home" / "data").parent
