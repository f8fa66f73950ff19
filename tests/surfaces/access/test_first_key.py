"""The first start on a machine where nothing is set up, and keys that come from elsewhere."""

import hashlib
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from frontdesk.app import open_app
from frontdesk.errors import ConfigurationError
from frontdesk.interfaces.cli.serve import _print_first_key
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.desk import frontdesk_here, open_desk
from tests.support.wire import MODERN, call, curl
from tests.surfaces.access.lab import CLIENTS, opened

FIRST = re.compile(r"^Your key, shown this once: (zm_\w+)  \(user local\)$", re.MULTILINE)
BROUGHT = "zm_" + "0123456789abcdef" * 4


@shows("FIRST-KEY")
def test_the_first_start_prints_a_key_once_and_no_later_one_does(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with open_desk(data) as desk:
        [key] = FIRST.findall(desk.logged())
        said, body = call(MODERN)
        who = curl(desk.mcp, said | {"authorization": f"Bearer {key}"}, body).structured
        assert (who["user_id"], who["scopes"], who["verified"]) == ("local", None, True)
        nobody = curl(desk.mcp, said | {"x-agent-id": "a"}, body).structured
        assert nobody["user_id"] is None, "without it there is nobody"
    rows = [json.loads(row) for row in frontdesk_here("journal", "--json", data=data).stdout.splitlines()]
    assert (rows[0]["surface"], rows[0]["action"], rows[0]["user_id"]) == (
        "cli",
        f"keys create {key.split('_')[1]}",
        "local",
    )
    assert key not in str(rows)
    frontdesk_here("keys", "revoke", key.split("_")[1], data=data)
    assert anyio.run(first_keys, {"FRONTDESK_DATA": data}) == "", "not even where it was revoked"


@shows("FIRST-KEY")
@pytest.mark.parametrize(
    "values",
    [
        {"OAUTH_CLIENTS": CLIENTS},
        {"FRONTDESK_ISSUERS": [{"issuer": "https://id.example"}]},
        {"FRONTDESK_HOST": "0.0.0.0"},
        {"FRONTDESK_PUBLIC_URL": "https://desk.example"},
    ],
)
def test_where_something_is_set_up_or_the_world_can_reach_it_there_is_none(
    tmp_path: Path, values: dict[str, object]
) -> None:
    assert anyio.run(first_keys, {"FRONTDESK_DATA": tmp_path / "data", **values}) == ""


@shows("FIRST-KEY")
def test_it_does_not_open_a_server_to_the_world(tmp_path: Path) -> None:
    data = {"FRONTDESK_DATA": tmp_path / "data"}
    assert FIRST.search(anyio.run(first_keys, data))

    async def expose() -> None:
        async with open_app(settings_with(**data, FRONTDESK_HOST="0.0.0.0")) as app:
            with pytest.raises(ConfigurationError, match="nobody could authenticate"):
                await app.check_exposure()
            await app.identity.create_key(name="", agent_id=None, user_id="ann")
            await app.check_exposure()

    anyio.run(expose)


async def first_keys(values: Mapping[str, object]) -> str:
    """What somebody who starts the server reads."""
    read = io.StringIO()
    async with open_app(settings_with(**values)) as app:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stderr", read)
            async with anyio.create_task_group() as group:
                # Processes that start together make one between them.
                for _ in range(3):
                    group.start_soon(_print_first_key, app)
    assert read.getvalue().count("\n") <= 1
    return read.getvalue()


@pytest.mark.parametrize("hashed", [False, True])
def test_a_key_from_elsewhere_is_taken_over_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, hashed: bool
) -> None:
    data = tmp_path / "data"
    digest = hashlib.sha256(BROUGHT.encode()).hexdigest()

    def bring(text: str, *more: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{text}\n"))
        done = frontdesk_here("keys", "import", "--user", "ann", *(("--hash",) if hashed else ()), *more, data=data)
        return done.returncode, done.stdout + done.stderr

    for wrong in ("nonsense", "zm_123", BROUGHT if hashed else digest):
        code, said = bring(wrong)
        assert (code, wrong in said) == (2, False)
    code, said = bring(digest if hashed else BROUGHT, "--scope", "tasks.read", "--scope", "identity:read")
    assert code == 0, said
    assert digest[:12] in said
    assert BROUGHT not in said
    assert bring(digest if hashed else BROUGHT)[0] == 1, "once is enough"
    [row] = [json.loads(line) for line in frontdesk_here("keys", "list", "--json", data=data).stdout.splitlines()]
    assert (row["id"], row["user_id"], row["scopes"]) == (digest[:12], "ann", ["identity:read", "tasks.read"])

    async def use() -> None:
        async with opened(settings_with(FRONTDESK_DATA=data)) as lab:
            assert await lab.whose(BROUGHT) == "ann"
            answer = await lab.mine(authorization=f"Bearer {BROUGHT[:-1]}0")
            assert answer.status_code == 401

    anyio.run(use)
    rotated = frontdesk_here("keys", "rotate", digest[:12], data=data).stdout.strip()
    assert rotated.startswith("zm_"), "its successor is of our own form"
    assert len(rotated) > len(BROUGHT) - 5
