"""A tool becomes text in the form the model was trained on."""

import pytest

from frontdesk.tools.model import space_words, tool_text


def test_a_tool_with_everything_is_one_line_of_server_name_description_and_inputs() -> None:
    made = tool_text(
        "Space Exploration/Astrobiology", "getPlanetInfo", "Tells about a planet.", ["planet_name", "inDetail"]
    )
    assert (
        made
        == "Space Exploration Astrobiology | get Planet Info: Tells about a planet. (inputs: planet name, in Detail)"
    )


def test_what_is_empty_is_left_out() -> None:
    assert tool_text("", "WebRewind", "Shows an old page.", []) == "Web Rewind: Shows an old page."


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("get_current_weather", "get current weather"),
        ("getHTTPStatus", "get HTTP Status"),
        ("perform-EDA.now", "perform EDA now"),
        ("Buses_3_FindBus", "Buses 3 Find Bus"),
        ("VO2Max", "VO2 Max"),
        ("airquality", "airquality"),
        ("PDF&URLTool", "PDF&URL Tool"),
        ("Search engine optimization (SEO)", "Search engine optimization (SEO)"),
        ("a::b//c__d", "a b c d"),
        ("__", ""),
        ("", ""),
    ],
)
def test_names_fall_into_the_words_they_are_made_of(name: str, words: str) -> None:
    assert space_words(name) == words
