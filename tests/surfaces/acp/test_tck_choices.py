"""What a session can be set to: what acp-tck asks of modes and options."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.requirements import shows
from tests.support.acp.client import Client
from tests.support.acp.schema import Json
from tests.support.acp.words import Refused

INVALID_PARAMS = -32602


def values(option: Json) -> Sequence[str]:
    """What an option can be set to, be it in groups or not."""
    flat = [one for entry in option["options"] for one in entry.get("options", [entry])]
    return [one["value"] for one in flat]


@shows("ACP-MODES-001")
async def test_a_session_is_in_one_of_its_modes(client: Client, work: Path) -> None:
    modes = (await client.new_session(work))["modes"]
    assert modes["currentModeId"] in [mode["id"] for mode in modes["availableModes"]]


@shows("ACP-MODES-002")
async def test_every_mode_can_be_entered(client: Client, work: Path) -> None:
    told, since = await client.new_session(work), len(client.frames)
    session, modes = told["sessionId"], [mode["id"] for mode in told["modes"]["availableModes"]]
    wanted = [mode for mode in modes if mode != told["modes"]["currentModeId"]]
    for mode in wanted:
        assert await client.request("session/set_mode", {"sessionId": session, "modeId": mode}) == {}
    seen = client.updates("current_mode_update", session_id=session, since=since)
    assert [update["currentModeId"] for update in seen] == wanted
    assert wanted


@shows("ACP-MODES-002")
async def test_a_mode_that_is_not_there_is_refused(client: Client, work: Path) -> None:
    session = await client.open_session(work)
    with pytest.raises(Refused) as refused:
        await client.request("session/set_mode", {"sessionId": session, "modeId": "dream"})
    assert refused.value.code == INVALID_PARAMS


@shows("ACP-CONFIG-001")
async def test_every_option_stands_at_one_of_its_values(client: Client, work: Path) -> None:
    options = (await client.new_session(work))["configOptions"]
    assert {"mode", "model"} <= {option["id"] for option in options}
    for option in options:
        assert option["currentValue"] in values(option)


@shows("ACP-CONFIG-002")
async def test_setting_an_option_tells_all_of_them(client: Client, work: Path) -> None:
    told = await client.new_session(work)
    session, before = told["sessionId"], told["configOptions"]
    for option in before:
        for value in values(option):
            given = {"sessionId": session, "configId": option["id"], "value": value}
            after = (await client.request("session/set_config_option", given))["configOptions"]
            assert [one["id"] for one in after] == [one["id"] for one in before]
            assert {one["id"]: one["currentValue"] for one in after}[option["id"]] == value


@shows("ACP-CONFIG-002")
async def test_setting_the_mode_as_an_option_enters_it(client: Client, work: Path) -> None:
    session, since = await client.open_session(work), len(client.frames)
    given = {"sessionId": session, "configId": "mode", "value": "plan"}
    await client.request("session/set_config_option", given)
    [seen] = client.updates("current_mode_update", session_id=session, since=since)
    assert seen["currentModeId"] == "plan"


@shows("ACP-CONFIG-003")
async def test_no_option_is_a_switch_for_an_editor_that_shows_none(client: Client, work: Path) -> None:
    options = (await client.new_session(work))["configOptions"]
    assert {option["type"] for option in options} == {"select"}
