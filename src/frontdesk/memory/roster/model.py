"""The words of the roster."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody of whom something is kept: where they live, since when, and how many items can be found."""

    user_id: str
    zone: str
    created_at: datetime
    items: int
