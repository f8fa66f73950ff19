"""Tests the key of the first start, and people's own keys over HTTP."""

import hashlib
import io
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from frontdesk.app import open_app
from frontdesk.errors import ConfigurationError
from frontdesk.identity.rights import MEMORY_SCOPES
from frontdesk.interfaces.cli.serve import _print_first_key
from tests.conftest import settings_with
from tests.interfaces.access.conftest import CLIENTS, Lab, opened, token
from tests.requirements import shows
from tests.support.desk import frontdesk_here, open_desk
from tests.support.wire import MODERN, call, curl

# The first start on an unconfigured machine, and keys from elsewhere


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
    """The output that a person sees who starts the server."""
    read = io.StringIO()
    async with open_app(settings_with(**values)) as app:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stderr", read)
            async with anyio.create_task_group() as group:
                # Processes that start together make one key between them.
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


# Keys that people manage themselves: their life, their limits, and their isolation


PATH = "/api/user/api-keys"
USUAL = ["memories.read", "memories.write", "tasks.read", "tasks.write"]


def bearer(shown: str) -> dict[str, str]:
    return {"authorization": f"Bearer {shown}"}


async def make(lab: Lab, sub: str = "ann", **asked: Any) -> httpx2.Response:
    return await lab.web.post(PATH, json={"name": "laptop", **asked}, headers=bearer(token(sub)))


async def listed(lab: Lab, sub: str = "ann") -> list[dict[str, Any]]:
    answer = await lab.web.get(PATH, headers=bearer(token(sub)))
    assert answer.status_code == 200
    assert answer.json()["success"] is True
    return answer.json()["data"]


@shows("KEY-OWN")
async def test_a_key_is_made_told_once_listed_changed_and_deleted(lab: Lab) -> None:
    made = await make(lab, expires_in_days=30)
    assert made.status_code == 201
    told = made.json()["data"]
    text = told.pop("api_key")
    assert text.startswith(f"zm_{told['id']}_")
    assert told["key_preview"] == f"zm_***{text[-6:]}"
    assert (told["scopes"], told["is_active"], told["last_used_at"]) == (USUAL, True, None)
    left = datetime.fromisoformat(told["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=29) < left < timedelta(days=31)
    assert await listed(lab) == [told]
    assert await lab.whose(text) == "ann"

    one = f"{PATH}/{told['id']}"
    changed = await lab.web.put(one, json={"name": "desk", "scopes": ["tasks.read"]}, headers=bearer(token()))
    assert changed.json()["success"] is True
    assert (changed.json()["data"]["name"], changed.json()["data"]["scopes"]) == ("desk", ["tasks.read"])
    assert changed.json()["data"]["updated_at"] > told["updated_at"]
    for active, status in ((False, 401), (True, 200)):
        answer = await lab.web.put(one, json={"is_active": active}, headers=bearer(token()))
        assert answer.json()["data"]["is_active"] is active
        assert (await lab.mine(authorization=f"Bearer {text}")).status_code == status, "at once, in this process"
    await lab.app.identity.run_housekeeping()
    assert (await listed(lab))[0]["last_used_at"] is not None

    gone = await lab.web.delete(one, headers=bearer(token()))
    assert (gone.status_code, gone.json()) == (200, {"success": True, "message": "API key deleted"})
    assert await listed(lab) == []
    assert (await lab.mine(authorization=f"Bearer {text}")).status_code == 401
    for again in (
        await lab.web.delete(one, headers=bearer(token())),
        await lab.web.put(one, json={}, headers=bearer(token())),
    ):
        assert (again.status_code, again.json()) == (404, {"error": "API key not found", "success": False})


@shows("KEY-OWN")
async def test_a_key_does_what_its_scopes_say(lab: Lab) -> None:
    text = (await make(lab, scopes=["memories.read"])).json()["data"]["api_key"]
    assert (await lab.app.identity.authenticate(text)).scopes == {"memories.read"}


@shows("KEY-OWN")
async def test_a_key_gives_its_place_to_another_and_works_on_for_a_while(lab: Lab) -> None:
    old = (await make(lab)).json()["data"]
    rotated = await lab.web.post(f"{PATH}/{old['id']}/rotate", headers=bearer(token()))
    assert rotated.status_code == 201
    new = rotated.json()["data"]
    assert new["name"] == "laptop"
    assert [key["name"] for key in await listed(lab)] == ["laptop", f"laptop ({old['id']})"]
    for text in (old["api_key"], new["api_key"]):
        assert await lab.whose(text) == "ann"
    again = await lab.web.post(f"{PATH}/{old['id']}/rotate", headers=bearer(token()))
    assert again.status_code == 400
    assert "rotate that one" in again.json()["error"]
    at_once = await lab.web.post(f"{PATH}/{new['id']}/rotate", json={"overlap_hours": 0}, headers=bearer(token()))
    assert at_once.status_code == 201
    assert (await lab.mine(authorization=f"Bearer {new['api_key']}")).status_code == 401
    assert await lab.whose(at_once.json()["data"]["api_key"]) == "ann"


@shows("KEY-OWN")
async def test_nobody_sees_or_touches_the_keys_of_another(lab: Lab) -> None:
    key_id = (await make(lab, "ann")).json()["data"]["id"]
    operators = (await lab.app.identity.create_key(name="", agent_id=None, user_id="bob"))[0].id
    assert (await make(lab, "bob")).status_code == 201, "names are one's own too"
    assert len(await listed(lab, "bob")) == 1
    for other in (key_id, operators, "nobodysnobody"):
        for method, path, body in (("PUT", "", {"is_active": False}), ("DELETE", "", None), ("POST", "/rotate", {})):
            answer = await lab.web.request(method, f"{PATH}/{other}{path}", json=body, headers=bearer(token("bob")))
            assert answer.status_code == 404, (method, other)
    assert (await listed(lab, "ann"))[0]["is_active"] is True


@shows("KEY-OWN")
async def test_only_somebody_who_logged_in_manages_keys(lab: Lab) -> None:
    ours = (await make(lab)).json()["data"]["api_key"]
    admin = await lab.key("ann", "admin")
    for shown in ({}, bearer(ours), bearer(admin), bearer(await lab.key("ann"))):
        for method, path in (("GET", ""), ("POST", ""), ("PUT", "/x"), ("DELETE", "/x"), ("POST", "/x/rotate")):
            answer = await lab.web.request(
                method, PATH + path, json=None if method == "GET" else {"nonsense": 1}, headers=shown
            )
            assert answer.status_code == 401, (method, path)
            assert list(answer.json()) == ["error"]
    limited = await lab.web.get(PATH, headers=bearer(token(scope="tasks.read tasks.write")))
    assert limited.status_code == 403, "who may do less than everything makes nothing that may do more"
    assert limited.json()["required_scopes"] == ["admin"]
    assert limited.json()["success"] is False
    assert (await lab.web.get(PATH, headers=bearer(token(scope="admin")))).status_code == 200


@shows("KEY-OWN")
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"name": ""}, "name"),
        ({"name": "   "}, "must not be blank"),
        ({"name": "n" * 101}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["tasks.read", "everything"]}, ", ".join(MEMORY_SCOPES)),
        ({"scopes": ["tools:admin"]}, "there is no such scope"),
        ({"expires_in_days": 0}, "expires_in_days"),
        ({"expires_in_days": 3651}, "expires_in_days"),
        ({"expires_in_days": "30"}, "expires_in_days"),
        ({"expire_in_days": 30}, "expire_in_days"),
    ],
)
async def test_what_does_not_fit_is_refused_with_why(lab: Lab, asked: dict[str, Any], said: str) -> None:
    answer = await make(lab, **asked)
    assert answer.status_code == 400
    body = answer.json()
    assert (body["error"], body["success"], body["details"][0]["field"]) == ("Validation failed", False, "body")
    assert said in str(body["details"])
    assert await listed(lab) == []


async def test_a_name_is_given_once(lab: Lab) -> None:
    assert (await make(lab)).status_code == 201
    answer = await make(lab)
    assert answer.status_code == 409
    assert answer.json()["success"] is False
    other = (await make(lab, name="phone")).json()["data"]["id"]
    taken = await lab.web.put(f"{PATH}/{other}", json={"name": "laptop"}, headers=bearer(token()))
    assert taken.status_code == 409
    await lab.web.delete(f"{PATH}/{other}", headers=bearer(token()))
    assert (await make(lab, name="phone")).status_code == 201, "one that is gone leaves its name"
