"""A day by the clock on the wall where somebody lives: when things were done by now, and when others are due."""

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

A_DAY = timedelta(days=1)
FRIDAY = 4


@dataclass(frozen=True, slots=True)
class Day:
    """Hours are written `07:00`, and moments given back as the memory room reads them."""

    now: datetime
    zone: ZoneInfo

    def past(self, hour: str, minutes: int = 0, days: int = 0) -> datetime:
        """The last time that it was this hour, and so many minutes later is past too; or as many days before that."""
        today = self._at(0, hour)
        over = today + timedelta(minutes=minutes) <= self.now
        return self._at(-days if over else -days - 1, hour)

    def due(self, hour: str, days: int = 0) -> datetime:
        """This hour, so many days from today."""
        return self._at(days, hour)

    def friday(self, hour: str) -> datetime:
        """This hour on the next Friday that is not today."""
        weekday = self.now.astimezone(self.zone).weekday()
        return self._at((FRIDAY - weekday - 1) % 7 + 1, hour)

    def _at(self, days: int, hour: str) -> datetime:
        date = self.now.astimezone(self.zone).date() + days * A_DAY
        return datetime.combine(date, time.fromisoformat(hour), self.zone)
