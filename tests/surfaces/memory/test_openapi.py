"""The description of the HTTP API: it tells everything, and nothing else happens."""

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from frontdesk.app import App
from frontdesk.identity.rights import SCOPES
from frontdesk.interfaces.http.application import build_application
from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.chat import key
from tests.support.desk import Desk, frontdesk_here, open_desk
from tests.support.rest import speaking
from tests.support.schemathesis import run

STATUSES = {"400", "401", "403", "404", "408", "409", "413", "429", "503"}
JSON = "application/json"
# Other capabilities, what erases everything, and two lists that are asked for in the same words as a third.
NOT_NOW = r"^/(agents|v1|user/data|user/api-keys|timeline-items/(highlights|memories))"
# What is streamed has no end, and a server of tools is somewhere else.
NEVER = r"^/(agents/stream|user/data|v1/tools/(servers|refresh))"


@contextmanager
def served(data: Path, **settings: str) -> Generator[tuple[Desk, str, str]]:
    """A desk that lets nobody in without a key, and the keys of two people."""
    with open_desk(data, FRONTDESK_EMBEDDINGS="off", FRONTDESK_REQUIRE_AUTH="true", **settings) as desk:
        ada, bob = [
            re.findall(
                r"(?:fd|zm)_\S+", frontdesk_here("keys", "create", "--user", user, data=data, **settings).stdout
            )[0]
            for user in ("ada", "bob")
        ]
        yield desk, ada, bob


@shows("MEMORY-OPENAPI")
def test_no_request_is_answered_in_a_way_that_was_not_told(tmp_path: Path) -> None:
    with served(tmp_path / "data") as (desk, ada, _):
        run(desk, ada, tmp_path, "--exclude-path-regex", NOT_NOW, "--phases", "examples,coverage")


@pytest.mark.slow
@shows("MEMORY-OPENAPI")
def test_no_request_anywhere_is_answered_in_a_way_that_was_not_told(settings: Settings, tmp_path: Path) -> None:
    url = settings.database_url
    where = {"FRONTDESK_DATABASE_URL": url.get_secret_value()} if url else {}
    with served(settings.data, **where) as (desk, ada, bob):
        run(desk, ada, tmp_path, "--exclude-path-regex", NEVER, "-n", "30", seconds=1200)
        run(desk, bob, tmp_path, "--include-path", "/user/data", "-n", "10")


async def described(app: App) -> dict[str, Any]:
    async with speaking(build_application(app), await key(app, "ada")) as somebody:
        return await somebody.get("/openapi.json")


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Those of the memory capability, by method and path."""
    for path, methods in document["paths"].items():
        if not path.startswith(("/agents/", "/v1/", "/user/api-keys")):
            yield from ((f"{method.upper()} {path}", told) for method, told in methods.items())


@shows("MEMORY-OPENAPI")
@pytest.mark.anyio
async def test_every_route_says_what_it_is_for_what_it_needs_and_how_it_refuses(app: App) -> None:
    found = dict(operations(await described(app)))
    assert len(found) >= 70
    for name, told in found.items():
        assert told["summary"], name
        assert set(told["responses"]) >= STATUSES, name
        assert "422" not in told["responses"], name
        needed = [scope for scheme in told["security"] for scope in scheme["HTTPBearer"]]
        assert set(needed) <= set(SCOPES), name


@shows("MEMORY-OPENAPI")
@pytest.mark.anyio
async def test_every_example_fits_its_schema(app: App) -> None:
    document = await described(app)
    found = [one for _, told in operations(document) for one in examples(told)]
    assert len(found) > 100
    for example, schema in found:
        jsonschema.validate(example, {**schema, "components": document["components"]})


def examples(told: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """What is sent and what is answered by example, each with its schema."""
    for one in (*told["responses"].values(), told.get("requestBody", {})):
        content = one.get("content", {}).get(JSON, {})
        if "example" in content:
            yield content["example"], content["schema"]
        for given in content.get("examples", {}).values():
            yield given["value"], content["schema"]
