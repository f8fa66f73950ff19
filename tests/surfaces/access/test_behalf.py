"""A person's token by header: from whom it is taken, and what is left of it beside the client's own credential."""

import base64
import json
import time

import pytest

from frontdesk.identity import rights
from frontdesk.identity.inbound import credential_on_behalf
from frontdesk.identity.model import Credential
from frontdesk.interfaces.http.context import RequestContext
from frontdesk.interfaces.http.middleware import PERSON_TOKEN_HEADER, act_for_person
from frontdesk.settings import Settings
from tests.requirements import shows
from tests.surfaces.access.lab import BASE, ISSUER, Lab, by_code, opened, token, with_issuer

pytestmark = pytest.mark.anyio


def unsigned() -> str:
    said = {"iss": ISSUER, "sub": "ann", "aud": f"{BASE}/mcp", "exp": int(time.time()) + 600}
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({"alg": "none"}, said)
    ]
    return ".".join([*parts, ""])


def forged() -> list[str]:
    swapped = [*token("ann").split(".")[:2], token("bob").split(".")[2]]
    return [
        unsigned(),
        ".".join(swapped),
        token(exp=1),
        token(aud="https://elsewhere.example/mcp"),
        token(iss="https://elsewhere.example"),
        "nonsense",
        "zm_" + "0" * 64,
        "zt_nobodys",
        f"{token()}, {token('bob')}",
    ]


@shows("BEHALF")
async def test_a_program_on_this_machine_names_people_by_their_tokens(lab: Lab) -> None:
    for sub, sent in (("ann", token()), ("bob", f"Bearer {token('bob')}"), ("ann", f"bearer {await lab.key('ann')}")):
        answer = await lab.mine(x_user_auth_token=sent)
        assert answer.json()["result"]["structuredContent"] == {"user_id": sub}
    assert (await lab.mine()).status_code == 401, "nothing is kept"
    assert (await lab.mine(x_user_auth_token="")).status_code == 401
    assert (await lab.mine("/mcp", x_user_auth_token=token(), x_agent_id="a")).status_code == 200


@shows("BEHALF")
async def test_a_platform_names_people_by_their_tokens_from_anywhere(settings: Settings) -> None:
    async with opened(with_issuer(settings.with_values(require_auth=True))) as lab:
        platform = await lab.key(agent="*")
        answer = await lab.mine(authorization=f"Bearer {platform}", x_user_auth_token=token(), x_forwarded_for="::1")
        assert answer.json()["result"]["structuredContent"] == {"user_id": "ann"}
        alone = await lab.mine(authorization=f"Bearer {platform}")
        assert alone.json()["error"]["code"] == -32011, "the platform itself is nobody"


@shows("BEHALF")
async def test_from_anybody_else_it_is_refused_even_if_it_holds(lab: Lab) -> None:
    agents = await lab.key(agent="clerk")
    for shown in (
        {"authorization": f"Bearer {agents}"},
        {"authorization": f"Bearer {token(sub='app', azp='app')}"},
    ):
        for sent in (token(), "nonsense"):
            answer = await lab.mine(x_user_auth_token=sent, **shown)
            assert answer.status_code == 403
            assert "trusted client alone" in answer.json()["error_description"]
    passed_on = await lab.mine(x_user_auth_token=token(), x_forwarded_for="198.51.100.7")
    assert passed_on.json()["result"]["structuredContent"] == {"user_id": "ann"}, "alone it is her own credential there"
    elsewhere = await lab.mine("/mcp", x_user_auth_token=token(), x_forwarded_for="198.51.100.7")
    assert elsewhere.status_code == 401, "by a proxy there is nobody without a credential"


@shows("BEHALF")
async def test_two_people_in_one_request_are_refused_and_one_twice_is_not(lab: Lab) -> None:
    for own in (await lab.key("bob"), await lab.key("bob", agent="*"), token("bob")):
        other = await lab.mine(authorization=f"Bearer {own}", x_user_auth_token=token("ann"))
        assert other.status_code == 403
        same = await lab.mine(authorization=f"Bearer {own}", x_user_auth_token=token("bob"))
        assert same.json()["result"]["structuredContent"] == {"user_id": "bob"}


@shows("BEHALF")
async def test_a_token_that_does_not_hold_is_refused_everywhere(lab: Lab) -> None:
    platform = f"Bearer {await lab.key(agent='*')}"
    for wrong in forged():
        for answer in (
            await lab.mine(authorization=f"Bearer {wrong}"),
            await lab.mine(x_user_auth_token=wrong),
            await lab.mine(authorization=platform, x_user_auth_token=wrong),
            await lab.web.get("/oauth/userinfo", headers={"authorization": f"Bearer {wrong}"}),
            await lab.web.get("/api/user/api-keys", headers={"authorization": f"Bearer {wrong}"}),
            await lab.issue(wrong),
        ):
            assert answer.status_code == 401, wrong
    nobody = await lab.mine(x_user_auth_token=token(sub="app", azp="app"))
    assert nobody.status_code == 401
    assert "names no person" in nobody.json()["error_description"]


@pytest.mark.parametrize(
    ("client", "person", "together"),
    [
        (None, None, None),
        ({"tasks.read"}, None, {"tasks.read"}),
        (None, {"tasks.read"}, {"tasks.read"}),
        ({"tasks.read", "tasks.write"}, {"tasks.read", "memories.read"}, {"tasks.read"}),
        ({"admin"}, {"tasks.read"}, {"tasks.read"}),
        ({"admin"}, {"admin", "tools:call"}, {"admin"}),
        ({"tools:call"}, {"admin"}, set[str]()),
    ],
)
def test_what_two_credentials_allow_together_is_what_each_allows(
    client: set[str] | None, person: set[str] | None, together: set[str] | None
) -> None:
    platform = Credential("key:1", "*", scopes=None if client is None else frozenset(client))
    ann = Credential("token:i", "an-app", "ann", None if person is None else frozenset(person))
    found = credential_on_behalf(platform, ann)
    assert (found.id, found.agent_id, found.user_id) == ("token:i", "*", "ann")
    assert found.scopes == together
    assert credential_on_behalf(None, ann).agent_id is None, "which app it was issued to is no agent of ours"
    for scope in rights.SCOPES:
        each = rights.allows_scope(platform.scopes, scope) and rights.allows_scope(ann.scopes, scope)
        assert rights.allows_scope(found.scopes, scope) == each


async def test_what_goes_on_to_tool_servers_is_the_persons_token_and_never_a_key_of_ours(lab: Lab) -> None:
    ours = (await lab.trade(by_code(await lab.code(token())))).json()["access_token"]
    passed_on: list[bool] = []
    for sent in (token(), await lab.key("ann"), ours):
        request_context = RequestContext("1", {PERSON_TOKEN_HEADER: sent})
        await act_for_person(lab.app.identity, request_context, sent, local=True)
        passed_on.append(request_context.token is not None)
        assert sent not in repr(request_context)
    assert passed_on == [True, False, False]
