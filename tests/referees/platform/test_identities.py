"""The functions beside the client: who a token or a turn names, by the SDK's and by ours."""

from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from microsoft_agents_a365.runtime.utility import Utility
from microsoft_agents_a365.tooling.models import MCPServerConfig
from microsoft_agents_a365.tooling.utils import utility as sdk

from frontdesk.agent365 import agent_identity as platform
from frontdesk.agent365 import model
from tests.referees.platform.matrix.audiences import FIRST_KIND, SCOPES, SECOND_KIND
from tests.referees.platform.matrix.ids import TOKENS, activity
from tests.referees.platform.matrix.making import turn
from tests.referees.platform.matrix.requests import RAISING
from tests.requirements import shows

AGENTIC = {"recipient": {"id": "agent", "role": "agenticAppInstance", "agenticAppId": "instance"}}
# What is read otherwise on purpose: the page has why.
FIXED = frozenset(source.name for source in TOKENS if source.sdk != source.ours)
KEPT: dict[str, str | None] = {
    "none": None,
    "empty": "",
    "spaces": "  ",
    **{source.name: source.value for source in TOKENS if source.name not in FIXED},
}


def failing() -> bool:
    raise RuntimeError("not here")


def agentic(is_agentic: Callable[[], Any], instance: Any = "instance") -> object:
    return turn(is_agentic_request=is_agentic, get_agentic_instance_id=lambda: instance)


TURNS = {
    "none": None,
    "no activity": SimpleNamespace(),
    "an activity that is None": SimpleNamespace(activity=None),
    "no such method": turn(id="activity"),
    "a method that is none": turn(is_agentic_request=True),
    "agentic": agentic(lambda: True),
    "agentic without id": agentic(lambda: True, None),
    "agentic with an empty id": agentic(lambda: True, ""),
    "not agentic": agentic(lambda: False),
    "failing": agentic(failing),
    "no id to be had": turn(is_agentic_request=lambda: True),
    "raising": RAISING,
    "the host's own": SimpleNamespace(activity=activity(**AGENTIC)),
    "the host's own for a person": SimpleNamespace(activity=activity(recipient={"id": "bot"})),
}


@shows("A365-SAME")
@pytest.mark.parametrize("token", [pytest.param(token, id=name) for name, token in KEPT.items()])
def test_a_token_names_whom_it_names_for_the_sdk(token: str | None) -> None:
    assert platform.get_agent_id_from_token(token) == Utility.get_agent_id_from_token(token).strip()
    assert platform.get_app_id_from_token(token) == Utility.get_app_id_from_token(token).strip()


@shows("A365-HOSTILE")
@pytest.mark.parametrize("token", [pytest.param(it.value, id=it.name) for it in TOKENS if it.name in FIXED])
def test_whatever_a_token_names_is_text_that_a_header_can_hold(token: str) -> None:
    for found in (platform.get_agent_id_from_token(token), platform.get_app_id_from_token(token)):
        assert found.isascii()
        assert len(found) <= 256
        assert not found or found.isprintable()


@shows("A365-SAME")
def test_a_turn_is_for_the_agent_that_it_is_for_to_the_sdk() -> None:
    tokens = (None, "", "token", *(source.value for source in TOKENS[:6]))
    for (name, context), token in product(TURNS.items(), tokens):
        expected = Utility.resolve_agent_identity(context, token)
        assert platform.resolve_agent_identity(context, token) == expected, (name, token)


@shows("A365-SAME")
def test_a_server_wants_the_scope_that_the_sdk_asks_for() -> None:
    audiences, scopes = (
        [value for value in said.values() if value is None or isinstance(value, str)]
        for said in ({**FIRST_KIND, **SECOND_KIND}, SCOPES)
    )
    for audience, scope in product(audiences, scopes):
        theirs = MCPServerConfig("mail", "mail", audience=audience, scope=scope)
        mine = model.MCPServerConfig("mail", "mail", audience=audience, scope=scope)
        assert model.resolve_token_scope_for_server(mine) == sdk.resolve_token_scope_for_server(theirs)


@shows("A365-SAME")
@pytest.mark.parametrize("orchestrator", [None, "", "OpenAI", "Agent Framework"])
def test_a_framework_is_named_as_the_sdk_names_it(orchestrator: str | None) -> None:
    assert platform.get_user_agent_header(orchestrator) == Utility.get_user_agent_header(orchestrator)
