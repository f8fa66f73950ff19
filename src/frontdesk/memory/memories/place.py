"""Distances on the globe."""

from dataclasses import dataclass
from math import asin, cos, degrees, pi, radians, sin, sqrt

from frontdesk.errors import Invalid

EARTH_KM = 6371.0088
FARTHEST_KM = EARTH_KM * pi
NEAR_KM = 10.0
# What rounding may take from the edge of a box.
SLACK_KM = 0.001


@dataclass(frozen=True, slots=True)
class Around:
    """A place and how far around it."""

    latitude: float
    longitude: float
    km: float


@dataclass(frozen=True, slots=True)
class Box:
    """What a circle on the globe fits into. `west` is east of `east` where it lies over the line of the date."""

    south: float
    north: float
    west: float
    east: float


def around(latitude: float | None, longitude: float | None, km: float | None) -> Around | None:
    """From what was said, if anything was."""
    if latitude is None and longitude is None and km is None:
        return None
    if latitude is None or longitude is None:
        raise Invalid("near_lat and near_lng belong together: give both, and distance_km if it is not 10")
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        raise Invalid("near_lat must be from -90 to 90, and near_lng from -180 to 180")
    if km is not None and not km > 0:
        raise Invalid("distance_km must be more than 0")
    return Around(latitude, longitude, min(NEAR_KM if km is None else km, FARTHEST_KM))


def distance_km(a_latitude: float, a_longitude: float, b_latitude: float, b_longitude: float) -> float:
    """As the crow flies (haversine)."""
    a, b = radians(a_latitude), radians(b_latitude)
    apart = sin((b - a) / 2) ** 2 + cos(a) * cos(b) * sin(radians(b_longitude - a_longitude) / 2) ** 2
    return 2 * EARTH_KM * asin(sqrt(min(1.0, apart)))


def box(place: Around) -> Box:
    """All that is so near lies in it, and some that is not."""
    angle = (place.km + SLACK_KM) / EARTH_KM
    south, north = place.latitude - degrees(angle), place.latitude + degrees(angle)
    if south <= -90 or north >= 90:
        return Box(max(south, -90), min(north, 90), -180, 180)
    across = degrees(asin(min(1.0, sin(angle) / cos(radians(place.latitude)))))
    if across >= 90:
        return Box(south, north, -180, 180)
    return Box(south, north, _turned(place.longitude - across), _turned(place.longitude + across))


def is_near(place: Around, latitude: float, longitude: float) -> bool:
    return distance_km(place.latitude, place.longitude, latitude, longitude) <= place.km


def _turned(longitude: float) -> float:
    """Between -180 and 180."""
    return (longitude + 180) % 360 - 180
