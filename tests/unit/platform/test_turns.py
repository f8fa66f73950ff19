"""What is read of a turn, whose class is not ours."""

from enum import Enum
from types import SimpleNamespace

import pytest

from frontdesk.agent365.agent_identity import activity_id, blueprint_id, channel_names
from tests.requirements import shows
from tests.support.gateways import turn


class Channel(str, Enum):  # noqa: UP042 - the kind that hosts have, which says something else
    """As hosts have them: text by kind, and something else when it is written."""

    TEAMS = "msteams"


class Broken:
    """A property that fails."""

    @property
    def activity(self) -> object:
        raise TypeError("no activity now")


def sender(**attributes: object) -> SimpleNamespace:
    return SimpleNamespace(**attributes)


@shows("A365-AGENTID")
@pytest.mark.parametrize(
    "context",
    [
        turn(from_=sender(agentic_app_blueprint_id="blueprint")),
        turn(from_property=sender(agentic_app_blueprint_id="blueprint")),
        turn(from_property=sender(agenticAppBlueprintId="blueprint")),
        turn(from_=None, from_property=sender(agentic_app_blueprint_id=" blueprint ")),
        turn(from_=sender(agentic_app_blueprint_id=5, agenticAppBlueprintId="blueprint")),
    ],
)
def test_the_blueprint_is_found_by_either_name_of_the_sender(context: object) -> None:
    assert blueprint_id(context) == "blueprint"


@pytest.mark.parametrize("context", [None, 5, "turn", turn(), Broken(), turn(from_=Broken()), SimpleNamespace()])
def test_a_turn_with_parts_missing_says_nothing(context: object) -> None:
    assert (blueprint_id(context), activity_id(context), channel_names(context)) == (None, None, (None, None))


@pytest.mark.parametrize(
    ("activity", "said"),
    [
        ({"channel_id": "msteams"}, ("msteams", None)),
        ({"channel_id": "msteams:copilot"}, ("msteams", "copilot")),
        ({"channel_id": "msteams:"}, ("msteams", None)),
        ({"channel_id": ":copilot"}, (None, "copilot")),
        ({"channel_id": "msteams:copilot", "channel_id_sub_channel": "own"}, ("msteams", "own")),
        ({"channel_id": Channel.TEAMS}, ("msteams", None)),
        ({"channel_id": 5, "channel_id_sub_channel": 5}, (None, None)),
        ({"channel_id": "ms\r\nteams"}, ("ms teams", None)),
    ],
)
def test_the_channel_and_the_one_within_are_told_apart(
    activity: dict[str, object], said: tuple[str | None, str | None]
) -> None:
    assert channel_names(turn(**activity)) == said


def test_an_id_of_a_turn_is_made_fit_for_a_header() -> None:
    assert activity_id(turn(id="a\r\nb: c")) == "a b: c"
    assert activity_id(turn(id="é" * 300)) == "e" * 256
    assert activity_id(turn(id="中")) is None
