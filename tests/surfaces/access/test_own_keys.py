"""People's own keys over HTTP: their life, their limits, and that they are nobody else's."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from frontdesk.identity.rights import MEMORY_SCOPES
from tests.requirements import shows
from tests.surfaces.access.lab import Lab, token

pytestmark = pytest.mark.anyio
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
