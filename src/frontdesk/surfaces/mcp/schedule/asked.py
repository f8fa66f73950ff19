"""What the schedule tools take: loosely, since it is the scheduler that says in the contract's words what is wrong."""

import json
from collections.abc import Sequence
from typing import Any, cast

from pydantic import ConfigDict

from frontdesk.schedule.asked import (
    CLEARABLE,
    LISTED,
    LOOP_SECONDS,
    MOST_LISTED,
    MOST_TIMES,
    TIMES,
    Asked,
    Change,
)
from frontdesk.schedule.model import Misfire, Overlap, Standing
from frontdesk.surfaces.given import flag
from frontdesk.surfaces.mcp.tool import Arguments, loose

TIME = (
    "One moment: an ISO 8601 time in the future with Z or an offset (2025-12-25T10:00:00Z), or plain words "
    "(in two minutes, tomorrow at 9 Berlin time)."
)
CRON = "A cron rule of five fields (0 9 * * MON-FRI), @daily and the like, or plain words (every weekday at 9)."
EVERY = "How often: 30s, 5m, 1h, 2d, a number of seconds, or plain words (every two hours)."
ZONE = "The time zone as an IANA name, e.g. Europe/Berlin; UTC when left out."
PROMPT = "What you want to be told then, written so that it is understood without this conversation."
START = "When to begin: a time in the future, as ISO 8601 or in plain words."
END = "Nothing fires after this time."
REPETITIONS = "Stop after so many runs."
NOTHING = frozenset({"", "none", "null"})
RUNS = 20
VALIDATION = "Do not check that the agent exists."


def required(*names: str) -> ConfigDict:
    """What the schema calls required; that one is missing is told by the scheduler."""
    return ConfigDict(json_schema_extra={"required": list[Any](names)})


def said(given: object) -> str:
    """A text, also where it came as something else; half of a character, which JSON can carry, is replaced."""
    if given is None:
        return ""
    text = given if isinstance(given, str) else json.dumps(given)
    return text.encode(errors="replace").decode()


def text(given: object) -> str | None:
    """A text that may be left out, for which models also send an empty one, or a word for nothing."""
    found = said(given).strip()
    return None if found.lower() in NOTHING else found


def interval(given: object) -> str | int | None:
    """A length of time that may be left out: a number counts seconds."""
    return given if isinstance(given, int) and not isinstance(given, bool) else text(given)


def number(given: object, default: int | None = None) -> object:
    """A number that may be left out, as it came; whether it is one is for the scheduler to say."""
    found = text(given) if isinstance(given, str) else given
    return default if found is None else found


class NewPrompt(Arguments):
    """What every schedule needs."""

    prompt: object = loose("string", PROMPT)
    skip_validation: object = loose("boolean", VALIDATION, default=False)


class AtTime(NewPrompt):
    """Once."""

    model_config = required("prompt", "time")

    time: object = loose("string", TIME)
    zone: object = loose("string", ZONE)

    @property
    def asked(self) -> Asked:
        return Asked(
            said(self.prompt), time=said(self.time), zone=text(self.zone), skip_validation=flag(self.skip_validation)
        )


class ByCron(NewPrompt):
    """By a cron rule."""

    model_config = required("prompt", "cron")

    cron: object = loose("string", CRON)
    zone: object = loose("string", ZONE)
    start_at: object = loose("string", START)
    end_at: object = loose("string", END)
    max_repetitions: object = loose("integer", REPETITIONS, minimum=1)

    @property
    def asked(self) -> Asked:
        return Asked(
            said(self.prompt),
            cron=said(self.cron),
            zone=text(self.zone),
            start_at=text(self.start_at),
            end_at=text(self.end_at),
            max_repetitions=number(self.max_repetitions),
            skip_validation=flag(self.skip_validation),
        )


class Every(NewPrompt):
    """At an interval."""

    model_config = required("prompt", "every")

    every: object = loose("string", EVERY)
    start_at: object = loose("string", START)
    end_at: object = loose("string", END)
    max_repetitions: object = loose("integer", REPETITIONS, minimum=1)

    @property
    def asked(self) -> Asked:
        return Asked(
            said(self.prompt),
            every=interval(self.every) or said(self.every),
            start_at=text(self.start_at),
            end_at=text(self.end_at),
            max_repetitions=number(self.max_repetitions),
            skip_validation=flag(self.skip_validation),
        )


class Moments(Arguments):
    """Everything that can be said of when."""

    time: object = loose("string", TIME)
    cron: object = loose("string", CRON)
    every: object = loose("string", EVERY)
    zone: object = loose("string", ZONE)
    start_at: object = loose("string", START)
    end_at: object = loose("string", END)

    @property
    def moments(self) -> dict[str, Any]:
        names = ("time", "cron", "zone", "start_at", "end_at")
        texts = {name: text(getattr(self, name)) for name in names}
        return texts | {"every": interval(self.every), "loosely": True}


class Rules(Moments):
    """The same, and what to do when things do not go as planned."""

    max_repetitions: object = loose("integer", REPETITIONS, minimum=1)
    jitter: object = loose("string", "Let each run come up to this much later, e.g. 30s, so that not all come at once.")
    overlap: object = loose(
        "string",
        "What a run does that falls into the one before it: queue (wait), skip, or allow (run beside it).",
        enum=list(Overlap),
    )
    misfire: object = loose(
        "string",
        "After a time when nothing ran: once (one run makes up for all that were missed), all, or skip.",
        enum=list(Misfire),
    )
    max_late: object = loose("string", "Leave out a run that would be later than this, e.g. 1h.")
    attempts: object = loose("integer", "How often to try to deliver one run.", minimum=1)
    webhook: object = loose("string", "An https address that the agent's answer is sent to.")
    timeline: object = loose("boolean", "For later: there is no timeline yet, so leave it out.")
    conversation_id: object = loose("string", "The conversation to speak in; your main one when left out.")

    @property
    def rules(self) -> dict[str, Any]:
        texts = {name: text(getattr(self, name)) for name in ("overlap", "misfire", "webhook", "conversation_id")}
        lengths = {name: interval(getattr(self, name)) for name in ("jitter", "max_late")}
        numbers = {"max_repetitions": number(self.max_repetitions), "attempts": number(self.attempts)}
        timeline = None if self.timeline is None else flag(self.timeline)
        return self.moments | texts | lengths | numbers | {"timeline": timeline}


class Register(Rules):
    """A schedule of any kind."""

    model_config = required("prompt")

    prompt: object = loose("string", PROMPT)
    skip_validation: object = loose("boolean", VALIDATION, default=False)

    @property
    def asked(self) -> Asked:
        return Asked(said(self.prompt), **self.rules, skip_validation=flag(self.skip_validation))


class Which(Arguments):
    """Which schedule."""

    model_config = required("schedule_id")

    schedule_id: object = loose("integer", "The schedule's number, as promptyoself_list shows it.")


class Update(Rules):
    """What is to be different about a schedule."""

    model_config = required("schedule_id")

    schedule_id: object = loose("integer", "The schedule's number, as promptyoself_list shows it.")
    prompt: object = loose("string", "The new text.")
    clear: object = loose(
        "array",
        f"Names of what is to be taken away: {', '.join(CLEARABLE)}.",
        items={"type": "string"},
    )

    @property
    def change(self) -> Change:
        return Change(text(self.prompt), **self.rules, clear=frozenset(words(self.clear)))


class Listing(Arguments):
    """Which schedules to list."""

    include_cancelled: object = loose("boolean", "Also those that are cancelled or over.", default=False)
    after: object = loose("integer", "Go on after the schedule with this number: `next` of the answer before.")
    limit: object = loose("integer", "How many at most.", default=LISTED, minimum=1, maximum=MOST_LISTED)


class History(Arguments):
    """Which runs to tell of."""

    schedule_id: object = loose("integer", "Only runs of this schedule; all of yours when left out.")
    standing: object = loose(
        "string",
        "Only runs that stand so; dead ones were given up after all attempts.",
        enum=list(Standing),
    )
    limit: object = loose(
        "integer", "How many at most, the newest first.", default=RUNS, minimum=1, maximum=MOST_LISTED
    )
    before: object = loose("string", "Go on before this time, or with `next` of the answer before.")


class Upcoming(Moments):
    """Whose next times: those of a schedule that is there, or of a rule to try."""

    schedule_id: object = loose("integer", "A schedule that is there; or give a rule instead, to try it.")
    count: object = loose("integer", "How many times to tell.", default=TIMES, minimum=1, maximum=MOST_TIMES)


class Execute(Arguments):
    """Once, or again and again for a while."""

    loop: object = loose("boolean", "Go on for a while instead of running once.", default=False)
    interval: object = loose("integer", "Seconds from one round to the next, with loop.", default=60, minimum=1)
    max_seconds: object = loose(
        "integer", "With loop: how long to go on.", default=LOOP_SECONDS, minimum=1, maximum=LOOP_SECONDS
    )


class Upload(Arguments):
    """A tool for Letta."""

    model_config = required("source_code")

    source_code: object = loose("string", "The whole Python source: one function with type hints and a docstring.")
    name: object = loose("string", "What to call it in logs.")
    description: object = loose("string", "What it is for.")


class DefaultAgent(Arguments):
    """Which agent stands in where a call names none."""

    model_config = required("agent_id")

    agent_id: object = loose("string", "The agent's id; leave it empty to take the default away.")


class ScopedAgent(DefaultAgent):
    """The same for one scope."""

    scope: object = loose("string", "Whose default; your own when left out. Another's takes the scope schedules:admin.")


class OfScope(Arguments):
    """Whose default."""

    scope: object = loose("string", "Whose default; your own when left out.")


def words(given: object) -> Sequence[str]:
    """Names: a list, or comma separated."""
    if isinstance(given, str):
        return [word.strip() for word in given.split(",") if word.strip()]
    return [str(word) for word in cast("list[object]", given)] if isinstance(given, list) else []
