"""Distances on the globe, and the boxes that a database can look in."""

from math import cos, isclose, radians

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import Invalid
from frontdesk.memory.memories_rules import SearchArea, bounding_box, distance_km, is_near, parse_search_area

LATITUDES, LONGITUDES = st.floats(-90, 90), st.floats(-180, 180)


def test_known_distances_come_out() -> None:
    assert distance_km(52.5200, 13.4050, 48.8566, 2.3522) == pytest.approx(877.5, abs=1)
    assert distance_km(90, 0, -90, 77) == pytest.approx(20_015, abs=1)
    assert isclose(distance_km(0, 179.5, 0, -179.5), distance_km(0, 0, 0, 1))


@given(LATITUDES, LONGITUDES, st.floats(0.01, 21_000), st.floats(-1, 1), st.floats(-1, 1))
def test_whatever_is_near_lies_in_the_box(
    latitude: float, longitude: float, km: float, north: float, east: float
) -> None:
    place = SearchArea(latitude, longitude, km)
    reach = km / 111
    other_latitude = max(-90.0, min(90.0, latitude + north * reach))
    across = reach / max(cos(radians(other_latitude)), 1e-3)
    other_longitude = (longitude + east * across + 180) % 360 - 180
    found = bounding_box(place)
    if is_near(place, other_latitude, other_longitude):
        assert found.south <= other_latitude <= found.north
        beyond_west, before_east = other_longitude >= found.west, other_longitude <= found.east
        assert (beyond_west and before_east) if found.west <= found.east else (beyond_west or before_east)


def test_a_place_needs_both_of_its_numbers() -> None:
    assert parse_search_area(None, None, None) is None
    assert parse_search_area(1, 2, None) == SearchArea(1, 2, 10.0)
    for latitude, longitude, km in (
        (1, None, None),
        (None, 2, 3),
        (None, None, 3),
        (91, 0, 1),
        (0, 181, 1),
        (0, 0, -1),
    ):
        with pytest.raises(Invalid):
            parse_search_area(latitude, longitude, km)
