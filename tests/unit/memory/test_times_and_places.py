"""Tests times as people enter them in their zone, and distances on the globe."""

from datetime import UTC, date, datetime, timedelta
from math import cos, isclose, radians
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import Invalid
from frontdesk.memory.memories_rules import SearchArea, bounding_box, distance_km, is_near, parse_search_area
from frontdesk.memory.times import DayEdge, find_zone, parse_day, parse_time, span_of_days, today_in
from frontdesk.memory.validation import new_id, parse_id

# Times as people enter them, in their zone


BERLIN = ZoneInfo("Europe/Berlin")
PLACES = st.sampled_from([ZoneInfo(name) for name in ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu")])
DAYS = st.dates(date(1971, 1, 1), date(2199, 12, 31))


@pytest.mark.parametrize(
    ("text", "edge", "found"),
    [
        ("2026-11-20", DayEdge.START, datetime(2026, 11, 19, 23, tzinfo=UTC)),
        ("2026-11-20", DayEdge.END, datetime(2026, 11, 20, 22, 59, 59, tzinfo=UTC)),
        ("2026-11-20T09:00", DayEdge.END, datetime(2026, 11, 20, 8, tzinfo=UTC)),
        ("2026-11-20T09:00:00Z", DayEdge.START, datetime(2026, 11, 20, 9, tzinfo=UTC)),
        ("2026-11-20T09:00:00-05:00", DayEdge.START, datetime(2026, 11, 20, 14, tzinfo=UTC)),
    ],
)
def test_a_day_or_a_time_is_read_in_the_persons_zone(text: str, edge: DayEdge, found: datetime) -> None:
    assert parse_time(text, BERLIN, "due_date", edge) == found


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-13-01", "2026-02-30", "20-11-2026", "9999-12-31", "0001-01-01T00:00+14:00"]
)
def test_what_is_no_time_is_refused_by_the_name_of_its_argument(text: str) -> None:
    with pytest.raises(Invalid, match="due_date"):
        parse_time(text, BERLIN, "due_date")


def test_a_day_is_as_long_as_clocks_have_it() -> None:
    assert _length(date(2026, 3, 29)) == timedelta(hours=23)
    assert _length(date(2026, 10, 25)) == timedelta(hours=25)
    assert _length(date(2026, 11, 20)) == timedelta(hours=24)


def _length(of_day: date) -> timedelta:
    span = span_of_days(of_day, BERLIN)
    return span.end - span.start


@given(DAYS, PLACES)
def test_days_follow_each_other_without_a_gap_and_hold_their_own_moments(of_day: date, zone: ZoneInfo) -> None:
    span, after = span_of_days(of_day, zone), span_of_days(of_day + timedelta(days=1), zone)
    assert span.end == after.start
    start, end = parse_time(of_day.isoformat(), zone, "day"), parse_time(of_day.isoformat(), zone, "day", DayEdge.END)
    assert span.start == start <= end < span.end
    assert today_in(start, zone) == today_in(end, zone) == of_day


def test_a_zone_is_the_one_named_or_the_persons_own_and_never_a_guess() -> None:
    assert find_zone("europe/berlin", "UTC") == BERLIN
    assert find_zone(None, "Europe/Berlin") == find_zone(" ", "Europe/Berlin") == BERLIN
    with pytest.raises(Invalid, match="Unknown time zone"):
        find_zone("Berlin time", "UTC")
    with pytest.raises(Invalid, match="YYYY-MM-DD"):
        parse_day("tomorrow", "date")


def test_ids_are_uuids_in_the_order_of_their_making() -> None:
    start = datetime(2026, 11, 20, tzinfo=UTC)
    made = [new_id(start + timedelta(milliseconds=number)) for number in range(50)]
    assert made == sorted(made)
    assert len(set(made)) == 50
    assert parse_id(made[0].upper(), "Task") == made[0]
    assert all(one[14] == "7" and one[19] in "89ab" for one in made)


# Distances on the globe, and the boxes that a database can search


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
