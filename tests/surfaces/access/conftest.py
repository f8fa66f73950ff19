"""A desk with logins: built once a module, and emptied for each test."""

from collections.abc import AsyncGenerator

import pytest

from tests.conftest import settings_with
from tests.support.ready import Ready
from tests.surfaces.access.lab import Lab, browsing, emptied, opened, with_issuer


@pytest.fixture(scope="module")
async def installation(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> AsyncGenerator[Lab]:
    data = ready.in_folder(tmp_path_factory.mktemp("access") / "data")
    async with opened(with_issuer(settings_with(FRONTDESK_DATA=data))) as found:
        yield found


@pytest.fixture
async def lab(installation: Lab) -> AsyncGenerator[Lab]:
    await emptied(installation.app)
    async with browsing(installation.asgi) as web:
        yield Lab(installation.app, installation.asgi, web)
