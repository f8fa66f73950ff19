"""Tests schedules in plain words: the one rule that each phrase means, and the refusal of ambiguous ones."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.errors import Invalid
from frontdesk.schedules.create import parse_rule
from frontdesk.schedules.descriptions import describe_trigger
from frontdesk.schedules.model import SECOND, TriggerKind, from_us, to_us
from frontdesk.schedules.phrases.days_and_times import DAY_PARTS
from frontdesk.schedules.phrases.parser import parse_phrase
from frontdesk.schedules.phrases.recurrence import ONE_WORD_RECURRENCES
from frontdesk.schedules.phrases.tokens import (
    MONTH_NAMES,
    ORDINALS,
    SMALL_NUMBERS,
    TENS,
    UNIT_SECONDS,
    VAGUE_NUMBERS,
    WEEKDAY_NAMES,
)
from frontdesk.schedules.requests import RuleRequest
from frontdesk.schedules.triggers import first_fire, next_fire_after, preview_fires
from tests.requirements import shows

BERLIN = "Europe/Berlin"
# A Wednesday, 10:15:30 in Berlin.
NOW = to_us(datetime(2025, 6, 11, 8, 15, 30, tzinfo=UTC))

ONCE = {
    "in two minutes": "2025-06-11T08:17:30",
    "in 2 minutes": "2025-06-11T08:17:30",
    "In Two Minutes.": "2025-06-11T08:17:30",
    "in a minute": "2025-06-11T08:16:30",
    "in 90s": "2025-06-11T08:17:00",
    "in an hour": "2025-06-11T09:15:30",
    "in half an hour": "2025-06-11T08:45:30",
    "in a quarter of an hour": "2025-06-11T08:30:30",
    "in 1.5 hours": "2025-06-11T09:45:30",
    "in an hour and a half": "2025-06-11T09:45:30",
    "in two and a half hours": "2025-06-11T10:45:30",
    "in 2 hours and 30 minutes": "2025-06-11T10:45:30",
    "in 1 week, 2 days and 1 minute": "2025-06-20T08:16:30",
    "in half an hour and 5 minutes": "2025-06-11T08:50:30",
    "in 2h30m": "2025-06-11T10:45:30",
    "in twenty-five minutes": "2025-06-11T08:40:30",
    "in forty minutes": "2025-06-11T08:55:30",
    "in nineteen hours": "2025-06-12T03:15:30",
    "in 3 days": "2025-06-14T08:15:30",
    "in 3 days at 9": "2025-06-14T07:00:00",
    "in 2 weeks at 09:00": "2025-06-25T07:00:00",
    "two hours from now": "2025-06-11T10:15:30",
    "5 minutes from now": "2025-06-11T08:20:30",
    "in 5 minutes Tokyo time": "2025-06-11T08:20:30",
    "today at 17:00": "2025-06-11T15:00:00",
    "today at 5pm": "2025-06-11T15:00:00",
    "today at 5:30 p.m.": "2025-06-11T15:30:00",
    "today at noon": "2025-06-11T10:00:00",
    "tonight at 8": "2025-06-11T18:00:00",
    "this evening at 8": "2025-06-11T18:00:00",
    "this afternoon at 3": "2025-06-11T13:00:00",
    "tomorrow at 9": "2025-06-12T07:00:00",
    "tomorrow at 9 o'clock": "2025-06-12T07:00:00",
    "tomorrow at 9:30pm": "2025-06-12T19:30:00",
    "tomorrow at 05:00": "2025-06-12T03:00:00",
    "tomorrow at 00:00": "2025-06-11T22:00:00",
    "tomorrow morning at 6": "2025-06-12T04:00:00",
    "tomorrow evening at 7": "2025-06-12T17:00:00",
    "tomorrow at 8 in the evening": "2025-06-12T18:00:00",
    "at 9 tomorrow": "2025-06-12T07:00:00",
    "the day after tomorrow at 10": "2025-06-13T08:00:00",
    "at 9": "2025-06-12T07:00:00",
    "at 11": "2025-06-11T09:00:00",
    "at 17:30": "2025-06-11T15:30:00",
    "at 12": "2025-06-11T10:00:00",
    "at 12am": "2025-06-11T22:00:00",
    "at midnight": "2025-06-11T22:00:00",
    "9am": "2025-06-12T07:00:00",
    "noon": "2025-06-11T10:00:00",
    "monday at 9": "2025-06-16T07:00:00",
    "on monday at 9": "2025-06-16T07:00:00",
    "friday 9am": "2025-06-13T07:00:00",
    "at 5pm on friday": "2025-06-13T15:00:00",
    "wednesday at 9": "2025-06-18T07:00:00",
    "next wednesday at 11": "2025-06-18T09:00:00",
    "next monday at 9": "2025-06-16T07:00:00",
    "this friday at 9": "2025-06-13T07:00:00",
    "on december 25 at 10:00": "2025-12-25T09:00:00",
    "25 december at 10": "2025-12-25T09:00:00",
    "25th of december 2026 at 10am": "2026-12-25T09:00:00",
    "Dec 25, 2026 at 10am": "2026-12-25T09:00:00",
    "january 5 at 9": "2026-01-05T08:00:00",
    "on the 25th at 9": "2025-06-25T07:00:00",
    "on the 5th at 9": "2025-07-05T07:00:00",
    "2025-12-25 at 10:00": "2025-12-25T09:00:00",
    "2025-12-25 10:00 Berlin time": "2025-12-25T09:00:00",
    "tomorrow at 9 UTC": "2025-06-12T09:00:00",
    "tomorrow at 9 (UTC)": "2025-06-12T09:00:00",
    "tomorrow at 9 New York time": "2025-06-12T13:00:00",
    "tomorrow at 9 in Tokyo": "2025-06-12T00:00:00",
    "tomorrow at 9 in Japan": "2025-06-12T00:00:00",
    "tomorrow at 9, Australia/Lord_Howe": "2025-06-11T22:30:00",
    "tomorrow at 9 america/port-au-prince time": "2025-06-12T13:00:00",
    "tomorrow at 9 in Buenos Aires": "2025-06-12T12:00:00",
    "tomorrow at 9 local time": "2025-06-12T07:00:00",
    "next Friday 17:30 Europe/Paris": "2025-06-20T15:30:00",
    "next sunday at 9": "2025-06-15T07:00:00",
    "tomorrow 9": "2025-06-12T07:00:00",
    "tomorrow @ 9am": "2025-06-12T07:00:00",
    "tomorrow 21h": "2025-06-12T19:00:00",
    "tomorrow at 9h30": "2025-06-12T07:30:00",
    "friday 9": "2025-06-13T07:00:00",
    "friday at 13": "2025-06-13T11:00:00",
    "25 december 9": "2025-12-25T08:00:00",
    "half past nine": "2025-06-12T07:30:00",
    "half past 11": "2025-06-11T09:30:00",
    "quarter to one": "2025-06-11T10:45:00",
    "a quarter past ten": "2025-06-12T08:15:00",
    "tomorrow at quarter to eight": "2025-06-12T05:45:00",
    "tomorrow at half past five in the afternoon": "2025-06-12T15:30:00",
    "ten to nine pm": "2025-06-11T18:50:00",
    "10 past 9": "2025-06-12T07:10:00",
    "20 minutes to nine": "2025-06-12T06:40:00",
    "tomorrow at nine": "2025-06-12T07:00:00",
    "tomorrow at nine thirty": "2025-06-12T07:30:00",
    "tomorrow at 12 noon": "2025-06-12T10:00:00",
    "24.12.2025 18:00": "2025-12-24T17:00:00",
    "25.12.2025 at 9": "2025-12-25T08:00:00",
    "1.2.2026 9am": "2026-02-01T08:00:00",
    "24.12. at 18:00": "2025-12-24T17:00:00",
    "24/12/2025 18:00": "2025-12-24T17:00:00",
    "12/24/2025 18:00": "2025-12-24T17:00:00",
    "christmas eve at 18:00": "2025-12-24T17:00:00",
    "new year's day 2027 at noon": "2027-01-01T11:00:00",
    "end of this month at 5pm": "2025-06-30T15:00:00",
    "the last friday of next month at 16:00": "2025-07-25T14:00:00",
    "on the 15th of next month at 9": "2025-07-15T07:00:00",
    "remind me tomorrow at 9": "2025-06-12T07:00:00",
    "please remind me again in 2 minutes": "2025-06-11T08:17:30",
    "ping me in two minutes": "2025-06-11T08:17:30",
    "wake me up at 7": "2025-06-12T05:00:00",
    "Dec. 1 at 9am": "2025-12-01T08:00:00",
    "mon. 9am": "2025-06-16T07:00:00",
    "9a.m.": "2025-06-12T07:00:00",
    "tomorrow at 9:30p.m.": "2025-06-12T19:30:00",
    "9.30am": "2025-06-12T07:30:00",
    "9.30pm tomorrow": "2025-06-12T19:30:00",
    "monday 9.30 am": "2025-06-16T07:30:00",
    "tomorrow at 17:30:00": "2025-06-12T15:30:00",
    "friday 27 june at 9": "2025-06-27T07:00:00",
    "Friday, June 27, 2025 at 9:00 AM": "2025-06-27T07:00:00",
    "fri 27.6.2025 9:00": "2025-06-27T07:00:00",
    "friday 2025-06-27 at 9": "2025-06-27T07:00:00",
    "next friday, june 27 at 9": "2025-06-27T07:00:00",
    "friday the 13th at 9": "2025-06-13T07:00:00",
    "25-12-2025 09:00": "2025-12-25T08:00:00",
    "2025/12/25 9am": "2025-12-25T08:00:00",
    "2026-1-5 at 9": "2026-01-05T08:00:00",
    "in a fortnight at 9": "2025-06-25T07:00:00",
}

CRON = {
    "every weekday at 9 Berlin time": "0 9 * * MON-FRI",
    "every day at 9": "0 9 * * *",
    "each day at 9": "0 9 * * *",
    "daily at 9": "0 9 * * *",
    "once a day at 9": "0 9 * * *",
    "9am every day": "0 9 * * *",
    "at 9 every weekday": "0 9 * * MON-FRI",
    "weekdays at 9": "0 9 * * MON-FRI",
    "every weekend at 10": "0 10 * * SAT,SUN",
    "on weekends at 10": "0 10 * * SAT,SUN",
    "every monday at 9": "0 9 * * MON",
    "mondays at 9": "0 9 * * MON",
    "on mondays and thursdays at 9": "0 9 * * MON,THU",
    "every monday and friday at 8:30": "30 8 * * MON,FRI",
    "every mon, wed and fri at 8:30": "30 8 * * MON,WED,FRI",
    "every mon-fri at 9": "0 9 * * MON-FRI",
    "every monday to friday at 9": "0 9 * * MON-FRI",
    "every tuesday through thursday at 9": "0 9 * * TUE-THU",
    "every sat to mon at 9": "0 9 * * MON,SAT,SUN",
    "every monday to sunday at 9": "0 9 * * *",
    "every day at 9 and 17": "0 9,17 * * *",
    "every day at 9, 12 and 17": "0 9,12,17 * * *",
    "every monday at 9am and 5pm": "0 9,17 * * MON",
    "every day at 9:00 and 9:30": "0,30 9 * * *",
    "every morning at 7": "0 7 * * *",
    "every morning at 5": "0 5 * * *",
    "every evening at 8": "0 20 * * *",
    "every night at 11": "0 23 * * *",
    "every day at 5 in the afternoon": "0 17 * * *",
    "every day at midnight": "0 0 * * *",
    "every day at noon": "0 12 * * *",
    "every hour on the hour": "0 * * * *",
    "every hour at :15": "15 * * * *",
    "weekly on monday at 9": "0 9 * * MON",
    "every week on friday at 17:00": "0 17 * * FRI",
    "monthly on the 1st at 9": "0 9 1 * *",
    "every month on the 1st and 15th at 9": "0 9 1,15 * *",
    "every month on the last day at 18:00": "0 18 L * *",
    "every month on the last weekday at 18:00": "0 18 LW * *",
    "every month on the first day at 9": "0 9 1 * *",
    "monthly on the first monday at 9": "0 9 * * MON#1",
    "on the first monday of every month at 9": "0 9 * * MON#1",
    "every first monday of the month at 9": "0 9 * * MON#1",
    "every second monday of the month at 9": "0 9 * * MON#2",
    "the last friday of every month at 17:00": "0 17 * * 5L",
    "the last sunday of each month at 17:00": "0 17 * * 0L",
    "on the 1st of every month at 9": "0 9 1 * *",
    "every year on december 25 at 9": "0 9 25 12 *",
    "every december 25 at 9": "0 9 25 12 *",
    "yearly on 1 may at 10": "0 10 1 5 *",
    "mon-fri 9am": "0 9 * * MON-FRI",
    "monday to thursday at 8": "0 8 * * MON-THU",
    "every day at 21h": "0 21 * * *",
    "every day 9": "0 9 * * *",
    "mondays 9": "0 9 * * MON",
    "tuesdays and thursdays 18h30": "30 18 * * TUE,THU",
    "every day from monday to friday at 9": "0 9 * * MON-FRI",
    "every day at half past nine": "30 9 * * *",
    "nightly": "0 0 * * *",
    "every night": "0 0 * * *",
    "nightly at 11": "0 23 * * *",
    "nightly at 2am": "0 2 * * *",
    "last friday of the month at 16:00": "0 16 * * 5L",
    "the 15th of the month at noon": "0 12 15 * *",
    "first monday of the month 9": "0 9 * * MON#1",
    "end of month at 5pm": "0 17 L * *",
    "at the end of the month at 5pm": "0 17 L * *",
    "at the end of every month at 5pm": "0 17 L * *",
    "every month end at 17:00": "0 17 L * *",
    "every second day of the month at 9": "0 9 2 * *",
    "every hour at half past": "30 * * * *",
    "every other Tuesday at 5pm": "0 17 * * TUE every 2 weeks from 2025-06-17",
    "every other wednesday at 11": "0 11 * * WED every 2 weeks from 2025-06-11",
    "every other week on monday and friday at 9": "0 9 * * MON,FRI every 2 weeks from 2025-06-13",
    "every 2 weeks on tuesday at 5pm": "0 17 * * TUE every 2 weeks from 2025-06-17",
    "fortnightly on tuesday at 5pm": "0 17 * * TUE every 2 weeks from 2025-06-17",
    "every other weekend at 10": "0 10 * * SAT,SUN every 2 weeks from 2025-06-14",
    "every 2 days at 9": "0 9 * * * every 2 days from 2025-06-12",
    "every 2 days at 11": "0 11 * * * every 2 days from 2025-06-11",
    "every other day at 9 and 17": "0 9,17 * * * every 2 days from 2025-06-11",
    "every third day at 9": "0 9 * * * every 3 days from 2025-06-12",
    "every 2 weeks at 9": "0 9 * * * every 14 days from 2025-06-12",
    "every other month on the 1st at 9": "0 9 1 * * every 2 months from 2025-07-01",
    "every 3 months on the last day at 18:00": "0 18 L * * every 3 months from 2025-06-30",
    "everyday at 9": "0 9 * * *",
    "every mon & wed at 9": "0 9 * * MON,WED",
    "every noon": "0 12 * * *",
    "every midnight": "0 0 * * *",
    "last day of month at 9": "0 9 L * *",
    "last friday of month at 4pm": "0 16 * * 5L",
    "every last friday of month at 4pm": "0 16 * * 5L",
    "every fortnight on monday at 9": "0 9 * * MON every 2 weeks from 2025-06-16",
}

# When a repetition begins and ends, in Berlin; the end is the last moment that counts.
BOUNDED = {
    "every day at 9 until Christmas": (None, "2025-12-25T23:59:59.999999"),
    "every 10 minutes until 5pm": (None, "2025-06-11T17:00:00"),
    "every weekday at 9 until friday": (None, "2025-06-13T23:59:59.999999"),
    "mon-fri 9am until 31.12.2025": (None, "2025-12-31T23:59:59.999999"),
    "every other tuesday at 5pm until the end of the year": (None, "2025-12-31T23:59:59.999999"),
    "every day at 8 until the end of the month": (None, "2025-06-30T23:59:59.999999"),
    "nightly until new year's eve at 22:00": (None, "2025-12-31T22:00:00"),
    "every hour until 25 december at noon": (None, "2025-12-25T12:00:00"),
    "every day at 9 starting monday": ("2025-06-16T00:00:00", None),
    "every day at 9 from next monday until 1 july": ("2025-06-16T00:00:00", "2025-07-01T23:59:59.999999"),
    "every 2 hours starting tomorrow at 9": ("2025-06-12T09:00:00", None),
    "every day at 9 for 2 weeks": (None, "2025-06-25T10:15:29.999999"),
    "every day at 9 from next monday until next friday": ("2025-06-16T00:00:00", "2025-06-20T23:59:59.999999"),
    "every day at 9 from monday until friday 20 june": ("2025-06-16T00:00:00", "2025-06-20T23:59:59.999999"),
    "every day at 9 from 1 july to 24 july": ("2025-07-01T00:00:00", "2025-07-24T23:59:59.999999"),
    "every hour from tomorrow at 9 until tomorrow at 17:00": ("2025-06-12T09:00:00", "2025-06-12T17:00:00"),
    "every day at 9 until friday 27 june": (None, "2025-06-27T23:59:59.999999"),
    "every hour until tomorrow evening at 8": (None, "2025-06-12T20:00:00"),
}

# The same if the only time follows the start or the end: it is the time of each run.
TIME_BEHIND = {
    "every day starting tomorrow at 9": "every day at 9 starting tomorrow",
    "every weekday starting monday at 9 and 17": "every weekday at 9 and 17 starting monday",
    "every other tuesday until christmas at 5pm": "every other tuesday at 5pm until christmas",
    "every day until christmas in the evening at 8": "every evening at 8 until christmas",
    "every day until tomorrow evening at 8": "every evening at 8 until tomorrow",
    "every evening until christmas at 8": "every evening at 8 until christmas",
    "every 2 days starting tomorrow at 9": "every 2 days at 9 starting tomorrow",
    "nightly starting tomorrow at 2am": "every day at 2am starting tomorrow",
}

EVERY = {
    "every 5 minutes": "5m",
    "every five minutes": "5m",
    "every minute": "1m",
    "every second": "1s",
    "every hour": "1h",
    "hourly": "1h",
    "every half hour": "30m",
    "every 90 seconds": "90s",
    "every 1.5 hours": "90m",
    "every 2 hours and 15 minutes": "135m",
    "every two days": "2d",
    "every 2 weeks": "14d",
    "once every 10 minutes": "10m",
    "once an hour": "1h",
    "every other hour": "2h",
    "every other day": "2d",
    "every second week": "14d",
    "every fortnight": "14d",
}

REFUSED = {
    "today at 9": "Scheduled time must be in the future",
    "june 11 at 9": "Scheduled time must be in the future",
    "on the 11th at 9": "Scheduled time must be in the future",
    "2025-06-10 at 9": "Scheduled time must be in the future",
    "june 10 at 9": '"june 10 2026"',
    "at 5": "05:00 or 17:00",
    "tomorrow at 6:30": "06:30 or 18:30",
    "every friday at 5": "05:00 or 17:00",
    "tomorrow": "names no time of day",
    "tonight": "names no time of day",
    "every day": "names no time of day",
    "every morning": "names no time of day",
    "daily": "names no time of day",
    "wednesday at 11": '"today at 11:00" or "next wednesday at 11:00"',
    "this monday at 9": '"next monday"',
    "next week": "names no day",
    "tomorrow at midnight": '"at 00:00"',
    "tomorrow at 9 and 17": "several times",
    "17:30": '"at 17:30"',
    "at 28": "no time of day",
    "at 25:00": "no time of day",
    "at 9:75": "no time of day",
    "at 13pm": "no time of day",
    "at 0am": "no time of day",
    "at 9.30": "Write it as 9:30",
    "at 0930": "Write it as 9:30",
    "tomorrow at": 'After "at" comes a time',
    "tomorrow at lunch": 'After "at" comes a time',
    "every night at 2": 'does not go with "night"',
    "tomorrow morning at 9pm": 'does not go with "morning"',
    "tonight at midnight": "does not go with",
    "every morning at 7 in the evening": "two parts of the day",
    "in 2 hours at 9": "both a length and a time of day",
    "in a few minutes": "does not say how many",
    "in a couple of hours": "does not say how many",
    "in 2 months": "not all the same length",
    "every 3 months": "not all the same length",
    "in 0.3 seconds": "whole seconds",
    "in 100000 weeks": "is too far ahead",
    "in 100000 weeks at 9": "is too far ahead",
    "february 30 at 9": "February has no day 30",
    "feb 29 at 9": "February 2025 has no day 29",
    "on the 31st at 9": "June 2025 has no day 31",
    "on the 45th at 9": "No month has a day 45",
    "2025-02-30 at 9": "February 2025 has no day 30",
    "2025-13-01 at 9": "no month 13",
    "9999-01-01 at 9": "too far away",
    "12/25 at 9": "Write 2030-12-25",
    "every second monday at 9": '"of the month"',
    "every first monday at 9": '"of the month"',
    "every fifth monday of the month at 9": "Not every month has a fifth monday",
    "monday and friday at 9": '"every monday',
    "every day at 9:00 and 17:30": "a schedule for each time",
    "every week at 9": "names no day",
    "every month": "names no day",
    "every year at 9": "names no day",
    "every month on the 31st at 9": "Not every month has a day 31",
    "every february 29 at 9": "Not every year has a February 29",
    "every weekday at 9 EST": 'Write the city, as in "Berlin time"',
    "tomorrow at 9 cet": 'Write the city, as in "Berlin time"',
    "every weekday at 9 Eastern time": "Canada/Eastern or US/Eastern",
    "every weekday at 9 Munich time": 'No time zone is named after "Munich"',
    "every weekday at 9 in munich": 'No time zone is named after "munich"',
    "tomorrow at 9 Mars/Olympus": "Unknown time zone: Mars/Olympus",
    "every weekday at 9 San Francisco time": 'No time zone is named after "Francisco"',
    "tomorrow at 9 UTC+2": "Could not read",
    "tomorrow at 9 if it rains": 'Could not read "if it rains"',
    "every 5 minutes on weekdays": 'Could not read "on weekdays"',
    "every 15 minutes between 9 and 17": 'Could not read "between 9 and 17"',
    "in 5 minutes 3 minutes": 'Could not read "3 minutes"',
    "in 5 minutes and 2 hours": 'Could not read "and 2 hours"',
    "in 5 minutes tomorrow": 'Could not read "tomorrow"',
    "monday tuesday at 9": 'Could not read "tuesday at 9"',
    "yesterday at 9": "Scheduled time must be in the future",
    "tomorrow 5": "05:00 or 17:00",
    "half past five": "05:30 or 17:30",
    "half nine": '"half nine" may be before or after nine',
    "friday 13": '"friday 13" may be a time or a date',
    "tonight at 2am": "does not go with",
    "mon-fri 9-17": 'Could not read "- 17"',
    "every day 9 to 5": 'Could not read "to 5"',
    "03/04/2027 at 9": "may be read as a day and a month or the other way round",
    "31.11.2025 at 9": "November 2025 has no day 31",
    "24.13.2025 at 9": "no month 13",
    "twice a day": '"every day at 09:00 and 21:00"',
    "twice a day at 9 and 17": 'in place of "twice"',
    "biweekly on monday at 9": "may be twice a week or every two weeks",
    "monday 27 june at 9": "2025-06-27 is a Friday, not a Monday",
    "friday 05/06/2027 at 9": "may be read as a day and a month or the other way round",
    "05-06-2027 at 9": "may be read as a day and a month or the other way round",
    "every third friday at 9": '"every third friday" does not say of what',
    "every hour from 09:00 until 17:00": '"*/15 9-17 * * *"',
    "every 15 minutes from 9am to 5pm": "may be on one day or on every day",
    "every day at 9 starting friday until friday": "It begins on a Friday",
    "every 1st and 3rd monday at 9": '"every 1st and 3rd" does not say of what',
    "every hour until tomorrow evening": 'Could not read "until tomorrow evening"',
    "every day at 9 until tomorrow evening": 'Could not read "until tomorrow evening"',
    "every hour until tomorrow midnight": '"at 00:00"',
    "every other weekday at 9": '"every other day"',
    "every 2 months at 9": '"every 2 months on the 1st at 09:00"',
    "every 2000 days at 9": "1 to 1000",
    "every day at 9 until yesterday": "Scheduled time must be in the future",
    "every day at 9 until whenever": 'Could not read "until whenever"',
    "tomorrow at 9 until friday": 'Could not read "until friday"',
    "remind me to call Ann tomorrow at 9": "Put the text into the prompt",
    "tomorow at 9": 'Did you mean "tomorrow at 9"?',
    "evry day at 9": 'Did you mean "every day at 9"?',
    "every wendesday at 9 Berlin time": 'Did you mean "every wednesday at 9 Berlin time"?',
    "every day at 9 untill friday": 'Did you mean "every day at 9 until friday"?',
    "in five mintes": 'Did you mean "in five minutes"?',
    "tomorrow at 9 Berln time": 'Did you mean "Berlin time"?',
    "tomorrow at 9 Europe/Pariss": "Use Europe/Paris",
}

NO_WORDS = (
    "",
    "   ",
    "28",
    "9",
    "hello",
    "now",
    "soon",
    "in",
    "on",
    "every",
    "every banana",
    "every 45",
    "every -5 minutes",
    "every 0 minutes",
    "in 0 minutes",
    "in -5 minutes",
    "5 minutes",
    "next november 28 at 9",
    "last monday at 9",
    "@daily",
    "0 9 * * MON-FRI",
    "1 1 1 1 1",
    "not a time",
    "not-a-time",
    "invalid time",
    "time",
    "Berlin time",
    "in Japan",
    "it is the est",
    "hello foo/bar",
    "2025-12-25T10:00:00Z",
    "2025-12-25 10:00:00",
    "x" * 10_000,
)


@shows("SCHEDULE-AMBIGUOUS")
@shows("KEPT-16")
@pytest.mark.parametrize(("text", "expected"), ONCE.items())
def test_words_for_one_time_mean_that_time(text: str, expected: str) -> None:
    trigger = parse_phrase(text, NOW, BERLIN)
    assert trigger is not None
    assert (trigger.kind, trigger.value) == (TriggerKind.ONCE, f"{expected}+00:00")


@shows("KEPT-16")
@pytest.mark.parametrize(("text", "same"), TIME_BEHIND.items())
def test_a_time_behind_a_start_or_an_end_is_that_of_each_run(text: str, same: str) -> None:
    trigger = parse_phrase(text, NOW, BERLIN)
    assert trigger is not None
    assert trigger == parse_phrase(same, NOW, BERLIN)


@shows("KEPT-16")
@pytest.mark.parametrize("text", ["every day at 9 until christmas", "25.12. at 9", "december 25 at 9"])
def test_a_day_that_is_still_ahead_this_year_is_never_called_over(text: str) -> None:
    early = to_us(datetime(2025, 1, 2, 12, tzinfo=UTC))
    trigger = parse_phrase(text, early, BERLIN)
    assert trigger is not None
    assert from_us(trigger.end_us or to_us(datetime.fromisoformat(trigger.value))).date() == date(2025, 12, 25)


@shows("KEPT-16")
@pytest.mark.parametrize(("text", "expected"), CRON.items())
def test_words_for_days_and_times_mean_that_cron_rule(text: str, expected: str) -> None:
    trigger = parse_phrase(text, NOW, BERLIN)
    assert trigger is not None
    assert (trigger.kind, trigger.value, trigger.zone) == (TriggerKind.CRON, expected, BERLIN)
    assert next_fire_after(trigger, NOW) is not None


@pytest.mark.parametrize(("text", "bounds"), BOUNDED.items())
def test_words_for_a_start_and_an_end_bound_the_rule(text: str, bounds: tuple[str | None, str | None]) -> None:
    trigger = parse_phrase(text, NOW, BERLIN)
    assert trigger is not None
    start, end = (
        None if at is None else to_us(datetime.fromisoformat(at).replace(tzinfo=ZoneInfo(BERLIN))) for at in bounds
    )
    assert trigger.end_us == end
    assert start is None or trigger.start_us == start
    found = preview_fires(trigger, NOW, 1000)
    assert found
    assert all((start or NOW) <= at and (end is None or at <= end) for at in found)


@pytest.mark.parametrize(("text", "expected"), EVERY.items())
def test_words_for_an_interval_mean_that_interval_from_now(text: str, expected: str) -> None:
    trigger = parse_phrase(text, NOW, BERLIN)
    assert trigger is not None
    assert (trigger.kind, trigger.value) == (TriggerKind.INTERVAL, expected)
    start = first_fire(trigger, NOW)
    assert start is not None
    assert next_fire_after(trigger, start) == 2 * start - NOW


@shows("SCHEDULE-AMBIGUOUS")
@pytest.mark.parametrize(("text", "said"), REFUSED.items())
def test_words_that_cannot_be_read_in_one_way_are_refused_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_phrase(text, NOW, BERLIN)
    assert said in str(refused.value)


@pytest.mark.parametrize("text", NO_WORDS)
def test_what_speaks_of_no_time_is_left_to_others(text: str) -> None:
    assert parse_phrase(text, NOW, BERLIN) is None


def test_the_zone_that_is_named_beats_the_one_that_is_given() -> None:
    trigger = parse_phrase("every weekday at 9 New York time", NOW, BERLIN)
    assert trigger is not None
    assert trigger.zone == "America/New_York"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("on march 30 2025 at 2:30am", "The first time after that is 2025-03-30T03:00:00+02:00"),
        ("on october 26 2025 at 2:30am", "Write 2025-10-26T02:30:00+02:00 or 2025-10-26T02:30:00+01:00"),
    ],
)
def test_a_time_that_comes_never_or_twice_is_refused_with_those_that_there_are(text: str, said: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_phrase(text, to_us(datetime(2025, 1, 1, tzinfo=UTC)), BERLIN)
    assert said in str(refused.value)


@pytest.mark.parametrize("day", range(1, 8))
def test_next_weekday_is_the_day_that_two_of_three_ways_to_count_agree_on(day: int) -> None:
    """The first day of that name, that of the next week from Monday on, and that of the next week from Sunday on."""
    today = datetime(2025, 6, 8 + day, 12, tzinfo=UTC)
    for number, name in enumerate(WEEKDAY_NAMES, 1):
        coming = (number - day - 1) % 7 + 1
        ways = [coming, 7 - day + number, 7 - day % 7 + number % 7]
        trigger = parse_phrase(f"next {name} at 9", to_us(today), "UTC")
        assert trigger is not None
        meant = (datetime.fromisoformat(trigger.value).date() - today.date()).days
        assert ways.count(meant) >= 2


# For each: whether it means a day (and how many days after the first such day, of how many weeks and months).
Meant = Callable[[date, date], bool]
RECURRING: dict[str, tuple[Meant, list[time]]] = {
    "every other tuesday at 5pm": (
        lambda day, first: day.isoweekday() == 2 and (day - first).days % 14 == 0,
        [time(17)],
    ),
    "every 3 weeks on sunday at 2:30am": (
        lambda day, first: day.isoweekday() == 7 and (day - first).days % 21 == 0,
        [time(2, 30)],
    ),
    "every 2 days at 9": (lambda day, first: (day - first).days % 2 == 0, [time(9)]),
    "every other day at 1am and 9am": (lambda day, first: (day - first).days % 2 == 0, [time(1), time(9)]),
    "last friday of the month at 16:00": (
        lambda day, _: day.isoweekday() == 5 and (day + timedelta(days=7)).month != day.month,
        [time(16)],
    ),
    "end of month at 5pm": (lambda day, _: (day + timedelta(days=1)).day == 1, [time(17)]),
    "every 3 months on the last day at 18:00": (
        lambda day, first: (day + timedelta(days=1)).day == 1 and (day.month - first.month) % 3 == 0,
        [time(18)],
    ),
    "mon-fri 9am": (lambda day, _: day.isoweekday() < 6, [time(9)]),
    "nightly": (lambda _day, _first: True, [time()]),
}


@shows("KEPT-16")
@given(
    now_us=st.integers(NOW, NOW + 12 * 366 * 86400 * SECOND),
    text=st.sampled_from(sorted(RECURRING)),
    zone=st.sampled_from([BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/Havana"]),
)
@settings(max_examples=150, deadline=None)
def test_what_comes_by_the_calendar_comes_on_those_days_at_that_time_on_the_wall(
    now_us: int, text: str, zone: str
) -> None:
    """Found day by day, with the calendar alone: a time in a skipped hour moves to right after it."""
    meant, clocks = RECURRING[text]
    trigger = parse_phrase(text, now_us, zone)
    assert trigger is not None
    there, expected, first_day = ZoneInfo(zone), list[int](), None
    day = from_us(now_us).astimezone(there).date() - timedelta(days=1)
    while len(expected) < 7:
        for at in clocks:
            due = _shown(datetime.combine(day, at), there)
            if due < now_us or not meant(day, first_day or day):
                continue
            first_day = first_day or day
            expected.append(due)
        day += timedelta(days=1)
    assert preview_fires(trigger, now_us - 1, 7) == expected[:7]


def _shown(wall: datetime, zone: ZoneInfo) -> int:
    """The first moment at which clocks in the zone show this; if they never do, the first moment after it."""
    moment_of = wall.replace(tzinfo=zone).astimezone(UTC)
    if moment_of.astimezone(zone).replace(tzinfo=None) == wall:
        return to_us(moment_of)
    # Clocks skip it: the change, found minute by minute.
    at = moment_of - timedelta(hours=3)
    while at.astimezone(zone).replace(tzinfo=None) < wall:
        at += timedelta(minutes=1)
    return to_us(at)


@shows("KEPT-16")
@pytest.mark.parametrize("text", sorted({*CRON, *EVERY, *BOUNDED}))
def test_a_rule_from_words_is_said_back_and_read_again_as_the_same_rule(text: str) -> None:
    trigger = parse_phrase(text, NOW, BERLIN)
    assert trigger is not None
    again = parse_rule(RuleRequest(when=trigger.value, zone=trigger.zone), NOW).trigger
    assert (again.kind, again.value, again.zone) == (trigger.kind, trigger.value, trigger.zone)
    said = describe_trigger(trigger, first_fire(trigger, NOW))
    assert trigger.value in said
    assert trigger.kind is TriggerKind.INTERVAL or "by a cron rule" not in said
    assert (trigger.end_us is None) == (", until 20" not in said)


@shows("KEPT-16")
@pytest.mark.parametrize("text", ["10", "2027", "9.5", "-3"])
def test_a_number_alone_says_no_time_and_is_told_what_to_write(text: str) -> None:
    with pytest.raises(Invalid, match="alone may be a time, a date or a length"):
        parse_rule(RuleRequest(when=text), NOW)


@shows("KEPT-16")
@pytest.mark.parametrize("text", ["2026-12-25", "25-12-2026", "2026/12/25", "25.12.2026"])
def test_a_date_alone_lacks_a_time_and_is_told_so(text: str) -> None:
    with pytest.raises(Invalid, match="names no time of day"):
        parse_rule(RuleRequest(when=text), NOW)


@shows("KEPT-16")
@pytest.mark.parametrize("text", [text for text in REFUSED if len(text.split()) > 4])
def test_words_are_never_called_an_invalid_cron_expression(text: str) -> None:
    for said in (RuleRequest(when=text, zone=BERLIN), RuleRequest(cron=text, zone=BERLIN)):
        with pytest.raises(Invalid) as refused:
            parse_rule(said, NOW)
        assert "Invalid cron expression" not in str(refused.value)


MORE_WORDS = """
a an and at in on of the every each once other last next this today tonight tomorrow day month from now half quarter
am pm noon midnight oclock weekday weekdays weekend hour to through - , : . / # @ * time UTC Berlin Europe/Berlin
0 1 5 9 12 13 24 28 31 99 1.5 09:00 9:30 17:00 24:00 1st 2nd 15th 31st 2026-01-01 12/25
"""
VOCABULARY = sorted(
    {
        *UNIT_SECONDS,
        *SMALL_NUMBERS,
        *TENS,
        *VAGUE_NUMBERS,
        *DAY_PARTS,
        *WEEKDAY_NAMES,
        *MONTH_NAMES,
        *ORDINALS,
        *ONE_WORD_RECURRENCES,
        *MORE_WORDS.split(),
    }
)


@given(words=st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=8))
@settings(max_examples=400, deadline=None)
def test_no_words_break_the_reader_and_what_it_takes_lies_ahead(words: list[str]) -> None:
    try:
        trigger = parse_phrase(" ".join(words), NOW, BERLIN)
    except Invalid:
        return
    if trigger is not None:
        following = first_fire(trigger, NOW)
        assert following is not None
        assert NOW < following < NOW + 110 * 366 * 86400 * SECOND


@given(text=st.text(max_size=60), now=st.integers(0, 2**52))
@settings(max_examples=100, deadline=None)
def test_no_text_breaks_the_reader(text: str, now: int) -> None:
    with suppress(Invalid):
        parse_phrase(text, now, BERLIN)


@given(
    now_us=st.integers(NOW, NOW + 5 * 366 * 86400 * SECOND),
    text=st.sampled_from(["tomorrow at 09:00", "friday at 13:00", "at 17:30", "on the 15th at 12:00", "may 5 at 8am"]),
)
@settings(max_examples=100, deadline=None)
def test_the_clock_on_the_wall_shows_what_was_said(now_us: int, text: str) -> None:
    try:
        trigger = parse_phrase(text, now_us, "America/New_York")
    except Invalid:
        return
    assert trigger is not None
    due = first_fire(trigger, now_us)
    assert due is not None
    assert due > now_us
    wall = from_us(due).astimezone(ZoneInfo("America/New_York"))
    assert wall.strftime("%H:%M") == {"t": "09:00", "f": "13:00", "a": "17:30", "o": "12:00", "m": "08:00"}[text[0]]
    assert text[0] != "f" or wall.isoweekday() == 5
    assert text[0] != "o" or wall.day == 15
    assert text[0] != "m" or (wall.month, wall.day) == (5, 5)
