"""What is asked about time."""

from pydantic import Field

from frontdesk.memory.asked.common import Asked, Id, Text, When, Zone


class DaySpending(Asked):
    """Which day, and where."""

    date: When = Field(description="The day, as YYYY-MM-DD.")
    timezone: Zone | None = None
    user_id: str | None = Field(None, max_length=200, description="You; nobody else's time can be asked for.")


class TaskTime(Asked):
    """Of which task, and between which times."""

    task_id: Id
    start_date: When | None = None
    end_date: When | None = None


class StartTimer(Asked):
    """On which task."""

    task_id: Id
    description: Text | None = Field(None, description="What you are doing.")


class StopTimer(Asked):
    """On which task."""

    task_id: Id


class NewEntryContent(Asked):
    """Time that was spent, as apps write it."""

    start_at: When
    end_at: When
    note: Text | None = None


class EntryContent(Asked):
    """What is to be different, as apps write it; an end stops a timer that runs."""

    start_at: When | None = None
    end_at: When | None = None
    note: Text | None = None
