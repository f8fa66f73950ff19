"""Tests that our client does everything that the SDK does, except for the documented fixes; also with tokens."""

import re
from collections.abc import Callable, Generator, Iterator
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from microsoft_agents_a365.runtime.utility import Utility
from microsoft_agents_a365.tooling.models import MCPServerConfig
from microsoft_agents_a365.tooling.utils import utility as sdk

from frontdesk.agent365 import agent_identity, model
from tests.agent365_sdk import answer_cases, request_cases, server_cases
from tests.agent365_sdk.cases import Case, turn
from tests.agent365_sdk.fixes import RULES, Pair, observed
from tests.agent365_sdk.relay import Relay, open_relay
from tests.agent365_sdk.request_cases import RAISING, TOKENS, activity
from tests.agent365_sdk.running import OURS, SDK, run, unsafe
from tests.agent365_sdk.server_cases import FIRST_KIND, SCOPES, SECOND_KIND
from tests.requirements import shows
from tests.support.agent365 import LocalPlatform, local_platform

# Our client against the SDK


PAGE = Path(__file__).parents[2] / "docs" / "reference" / "agent365.md"
ROW = re.compile(r"^\| `([a-z0-9-]+)` \| \S", re.MULTILINE)
MATRIX = {
    "answers": answer_cases.ANSWER_CASES,
    "audiences": server_cases.AUDIENCE_CASES,
    "chats": answer_cases.CHAT_CASES,
    "entries": server_cases.ENTRY_CASES,
    "ids": request_cases.ID_CASES,
    "requests": request_cases.REQUEST_CASES,
    "surroundings": request_cases.VARIABLE_CASES,
}
# This many in one test, so that several workers can share the tests.
BATCH = 300
SERVERS = {"mcpServers": [{"mcpServerName": "mail", "mcpServerUniqueName": "mcp_MailTools", "publisher": "somebody"}]}


def batches() -> Iterator[tuple[str, tuple[Case, ...]]]:
    for name, cases in MATRIX.items():
        for number, start in enumerate(range(0, len(cases), BATCH), 1):
            yield f"{name}-{number}", cases[start : start + BATCH]


@pytest.fixture(scope="module")
def platform() -> Generator[LocalPlatform]:
    with local_platform(SERVERS, tokens="off") as running:
        yield running


@shows("A365-SAME")
@shows("A365-HOSTILE")
@pytest.mark.parametrize("cases", [pytest.param(cases, id=name) for name, cases in batches()])
async def test_requests_and_results_differ_from_the_sdk_by_the_fixes_that_a_case_names_and_no_others(
    cases: tuple[Case, ...], platform: LocalPlatform, tmp_path: Path
) -> None:
    folder = tmp_path / "agent"
    folder.mkdir()
    async with open_relay(platform.url) as relay:
        shown = {case.name: (await seen(case, relay, folder), case.fixes) for case in cases}
    wrong = [f"{name}: {sorted(seen)}, not {sorted(named)}" for name, (seen, named) in shown.items() if seen != named]
    assert not wrong, "\n".join(wrong)


@shows("A365-SAME")
def test_every_fix_is_documented_and_shown_by_a_case() -> None:
    documented = ROW.findall(PAGE.read_text())
    named = frozenset[str]().union(*(case.fixes for cases in MATRIX.values() for case in cases))
    assert sorted(documented) == sorted(set(documented)) == sorted(named) == sorted(RULES)


@shows("A365-SAME")
def test_no_two_cases_go_by_one_name() -> None:
    for cases in MATRIX.values():
        names = [case.name for case in cases]
        assert len(names) == len(set(names)), sorted(name for name in set(names) if names.count(name) > 1)


async def seen(case: Case, relay: Relay, folder: Path) -> frozenset[str]:
    """The fixes that a case shows, and everything that is wrong with our side of it."""
    sdk = await run(case, SDK, relay, folder)
    ours = await run(case, OURS, relay, folder)
    return observed(Pair(case, sdk, ours, relay.url)) | unsafe(case, ours)


# The functions beside the client: the identity in a token or a turn, by the SDK's functions and by ours


AGENTIC = {"recipient": {"id": "agent", "role": "agenticAppInstance", "agenticAppId": "instance"}}
# These differ on purpose: the documentation page gives the reasons.
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
    assert agent_identity.get_agent_id_from_token(token) == Utility.get_agent_id_from_token(token).strip()
    assert agent_identity.get_app_id_from_token(token) == Utility.get_app_id_from_token(token).strip()


@shows("A365-HOSTILE")
@pytest.mark.parametrize("token", [pytest.param(it.value, id=it.name) for it in TOKENS if it.name in FIXED])
def test_whatever_a_token_names_is_text_that_a_header_can_hold(token: str) -> None:
    for found in (agent_identity.get_agent_id_from_token(token), agent_identity.get_app_id_from_token(token)):
        assert found.isascii()
        assert len(found) <= 256
        assert not found or found.isprintable()


@shows("A365-SAME")
def test_a_turn_is_for_the_agent_that_it_is_for_to_the_sdk() -> None:
    tokens = (None, "", "token", *(source.value for source in TOKENS[:6]))
    for (name, context), token in product(TURNS.items(), tokens):
        expected = Utility.resolve_agent_identity(context, token)
        assert agent_identity.resolve_agent_identity(context, token) == expected, (name, token)


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
    assert agent_identity.get_user_agent_header(orchestrator) == Utility.get_user_agent_header(orchestrator)
