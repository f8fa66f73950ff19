"""What the schedules API answers besides what every door tells of a schedule."""

from frontdesk.surfaces.scheduled import Run, Scheduled, Shape


class ScheduleList(Shape):
    """Schedules by their numbers; `next` goes into `after`."""

    schedules: list[Scheduled]
    next: int | None = None


class RunList(Shape):
    """Runs, the newest first; `next` goes into `before`."""

    runs: list[Run]
    next: str | None = None


class Started(Shape):
    """A run that was asked for; its history is found by this id."""

    schedule_id: int
    delivery_id: str
