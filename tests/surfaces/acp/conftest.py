"""An editor with an agent of its own, which the tests of a module share."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.support.acp.client import Client, editor
from tests.support.acp.words import ALLOW, PERMISSION, Answer
from tests.support.ready import Ready

Opening = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> AsyncGenerator[Client]:
    """An editor that can do nothing for its agent but ask the person, who allows everything."""
    data = ready.in_folder(tmp_path_factory.mktemp("editor") / "data")
    async with editor(data, answer={PERMISSION: ALLOW}) as opened:
        await opened.initialize()
        yield opened


@pytest.fixture
def opening(tmp_path: Path, ready: Ready) -> Opening:
    """Opens an editor for one test alone, on one data folder however often; not yet introduced."""
    data = ready.in_folder(tmp_path / "data")

    def open_editor(answer: dict[str, Answer] | None = None, **more: Any) -> AbstractAsyncContextManager[Client]:
        return editor(data, answer={PERMISSION: ALLOW} | (answer or {}), **more)

    return open_editor


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder to work in."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder
