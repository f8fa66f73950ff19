"""Which agent a schedule is for when the call names none."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import RequestParamsMeta

from tests.requirements import shows
from tests.support.desk import Desk, open_desk
from tests.surfaces.schedule.conftest import NEXT_YEAR, Asking, connected, created, made_key

pytestmark = pytest.mark.anyio
LATER = f"{NEXT_YEAR}-12-25T10:00:00Z"
FLAT = ("agent_id", "agentId", "letta_agent_id", "caller_agent_id")
SAID: list[dict[str, Any]] = [
    *({key: "agent-7"} for key in FLAT),
    *({"metadata": {key: "agent-7"}} for key in FLAT),
    *({"metadata": {"agent": {key: "agent-7"}}} for key in ("id", "agent_id", "agentId")),
    {"metadata": {"caller": {"id": "agent-7"}}},
    {"metadata": {"source_agent": {"agentId": "agent-7"}}},
]


async def diagnosed(ask: Asking, meta: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    said = cast("RequestParamsMeta", meta) if meta else None
    result = await ask.client.call_tool("promptyoself_inference_diagnostics", arguments, meta=said)
    assert result.structured_content is not None
    return result.structured_content


@shows("SCHEDULE-INFER")
@pytest.mark.parametrize("meta", SAID)
async def test_the_requests_metadata_names_the_agent_under_every_key(ask: Asking, meta: dict[str, Any]) -> None:
    told = await diagnosed(ask, meta)
    assert (told["status"], told["ctx_present"], told["inferred_agent_id"]) == ("ok", True, "agent-7")
    assert told["ctx_metadata_keys"] == list(meta.get("metadata", meta))
    assert told["inference_debug"]["source"] == "metadata"
    assert told["inference_debug"]["key"]


async def test_nothing_is_inferred_from_nothing(ask: Asking) -> None:
    told = await diagnosed(ask)
    assert told == {
        "status": "ok",
        "ctx_present": True,
        "ctx_metadata_keys": [],
        "env": dict.fromkeys(told["env"], False),
        "single_agent_fallback_enabled": False,
        "inferred_agent_id": None,
        "inference_debug": {"source": "none"},
    }
    assert set(told["env"]) >= {"PROMPTYOSELF_DEFAULT_AGENT_ID", "LETTA_AGENT_ID", "LETTA_DEFAULT_AGENT_ID"}


async def test_an_argument_and_a_header_are_told_as_what_they_are(desk: Desk, ask: Asking) -> None:
    told = await diagnosed(ask, agent_id="agent-8")
    assert (told["inferred_agent_id"], told["inference_debug"]["source"]) == ("agent-8", "parameter")
    async with connected(desk, agent="agent-9") as named:
        told = await diagnosed(named)
    assert (told["inferred_agent_id"], told["inference_debug"]["source"]) == ("agent-9", "header")


@contextmanager
def set_up(tmp_path_factory: pytest.TempPathFactory, **settings: str) -> Generator[Desk]:
    data = tmp_path_factory.mktemp("naming") / "data"
    with open_desk(data, FRONTDESK_WORKER="false", **settings) as desk:
        yield desk


@pytest.fixture(scope="module")
def by_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with set_up(tmp_path_factory, LETTA_AGENT_ID="agent-env") as desk:
        yield desk


@pytest.fixture(scope="module")
def lonely(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with set_up(tmp_path_factory, PROMPTYOSELF_USE_SINGLE_AGENT_FALLBACK="true") as desk:
        yield desk


@shows("SCHEDULE-INFER")
async def test_the_environment_names_the_agent(by_environment: Desk) -> None:
    async with connected(by_environment) as ask:
        told = await diagnosed(ask)
        assert (told["inferred_agent_id"], told["inference_debug"]) == (
            "agent-env",
            {"source": "env", "key": "LETTA_AGENT_ID"},
        )
        assert told["env"]["LETTA_AGENT_ID"] is True
        assert told["env"]["PROMPTYOSELF_DEFAULT_AGENT_ID"] is False
        made = await ask("schedule_time", prompt="x", time=LATER, skip_validation=True)
        listed = {one["id"]: one["agent_id"] for one in (await ask("list"))["schedules"]}
    assert listed[made["id"]] == "agent-env"


@shows("SCHEDULE-INFER")
async def test_the_only_agent_stands_in_while_it_is_the_only_one(lonely: Desk) -> None:
    only = await created(lonely, "Ada")
    async with connected(lonely) as ask:
        told = await diagnosed(ask)
        assert (told["single_agent_fallback_enabled"], told["inferred_agent_id"]) == (True, only)
        assert (await ask("schedule_time", prompt="x", time=LATER))["status"] == "success"
        await created(lonely, "Ben")
        assert await ask.error("schedule_time", prompt="x", time=LATER) == (
            "agent_id is required and could not be inferred"
        )


@shows("SCHEDULE-INFER")
async def test_ones_own_default_beats_the_environment_and_is_nobody_elses(by_environment: Desk) -> None:
    ann, bob = [await made_key(by_environment, user, agent="*") for user in ("ann", "bob")]
    agent = await created(by_environment, "Ada")
    async with connected(by_environment, proof=ann) as of_ann, connected(by_environment, proof=bob) as of_bob:
        assert (await of_ann("get_scoped_default_agent"))["agent_id"] is None
        told = await of_ann("set_scoped_default_agent", agent_id=agent)
        assert (told["status"], told["agent_id"]) == ("success", agent)
        assert (await of_ann("get_scoped_default_agent"))["agent_id"] == agent
        assert (await diagnosed(of_ann))["inferred_agent_id"] == agent
        assert (await diagnosed(of_ann))["inference_debug"]["source"] == "scoped_default"
        assert (await of_bob("get_scoped_default_agent"))["agent_id"] is None
        assert (await diagnosed(of_bob))["inferred_agent_id"] == "agent-env"
        await of_ann("schedule_time", prompt="x", time=LATER, skip_validation=True)
        assert [one["agent_id"] for one in (await of_ann("list"))["schedules"]] == [agent]
        await of_ann("set_scoped_default_agent", agent_id="")
        assert (await diagnosed(of_ann))["inferred_agent_id"] == "agent-env"


@shows("SCHEDULE-OWN")
async def test_everybodys_default_is_set_by_the_operator_alone(desk: Desk, agent: str, by_environment: Desk) -> None:
    # Where there are keys, nobody is the operator for naming nobody.
    proof = await made_key(by_environment, agent="agent-1")
    async with connected(by_environment, proof=proof) as of_agent, connected(desk, agent="agent-2") as named:
        for client in (of_agent, named):
            result = await refused(client, "set_default_agent", agent_id=agent)
            assert "operator" in result
    async with connected(desk) as operator:
        assert (await operator("set_default_agent", agent_id=agent))["agent_id"] == agent
        assert (await diagnosed(operator))["inferred_agent_id"] == agent
        assert (await operator("set_default_agent", agent_id=""))["agent_id"] is None
        assert (await diagnosed(operator))["inferred_agent_id"] is None


async def refused(ask: Asking, tool: str, **arguments: Any) -> str:
    """What the endpoint says to a caller without the right."""
    with pytest.raises(MCPError) as error:
        await ask.client.call_tool(f"promptyoself_{tool}", arguments)
    assert error.value.code == -32011
    return str(error.value)
