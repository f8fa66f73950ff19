"""Defines what operations on a person's records share: fields of requests, answers, and how tools are offered.

It also formats times, counts and lists for answers in text.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypedDict, TypeVar, Unpack, cast
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from frontdesk.identity.model import Caller
from frontdesk.memory.model import PersonScope
from frontdesk.memory.rest.responses import example_response
from frontdesk.memory.service import RecordServices
from frontdesk.memory.times import find_zone
from frontdesk.memory.validation import RecordPage
from frontdesk.operations import (
    BuiltinAgentTool,
    Call,
    McpPath,
    McpTool,
    OperationRequest,
    ResponseDocs,
    RestRoute,
    Run,
)
from frontdesk.text import one_line, parse_json_object

MAX_TEXT = 100_000
MAX_TAGS = 50
TAG_SEPARATOR = ","


def _split_tags(value: object) -> object:
    """Split tags that came as one text with commas between them, as many clients send them."""
    if isinstance(value, str):
        return [word.strip() for word in value.split(TAG_SEPARATOR) if word.strip()]
    return value


def split_words(value: object) -> object:
    """Split words at commas; a repeated parameter of a query works too."""
    if not isinstance(value, list):
        return value
    parts = [str(one).split(TAG_SEPARATOR) for one in cast("list[object]", value)]
    return [word.strip() for part in parts for word in part if word.strip()]


def _check_json(value: dict[str, Any]) -> dict[str, Any]:
    found = parse_json_object(value)
    if found is None:
        raise ValueError("must be a JSON object that is not nested deeper than 64 levels")
    return dict(found)


LongText = Annotated[str, Field(max_length=MAX_TEXT)]
ShortText = Annotated[str, Field(max_length=300)]
Tag = Annotated[str, Field(min_length=1, max_length=100)]
Tags = Annotated[list[Tag], Field(max_length=MAX_TAGS), BeforeValidator(_split_tags)]
WordList = Annotated[list[Tag], Field(max_length=MAX_TAGS), BeforeValidator(split_words)]
IdText = Annotated[str, Field(min_length=1, max_length=100)]
Percent = Annotated[int, Field(ge=0, le=100)]
Minutes = Annotated[int, Field(gt=0, le=10_000_000)]
Dollars = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
OneToTen = Annotated[int, Field(ge=1, le=10)]
MinusFiveToFive = Annotated[int, Field(ge=-5, le=5)]
Arousal = Annotated[int, Field(ge=0, le=5)]
Salience = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Latitude = Annotated[float, Field(ge=-90, le=90, allow_inf_nan=False)]
Longitude = Annotated[float, Field(ge=-180, le=180, allow_inf_nan=False)]
SortOrder = Literal["asc", "desc"]
ZoneName = Annotated[
    str, Field(max_length=64, description="Time zone as an IANA name, e.g. Europe/Berlin; yours if left out.")
]
TimeText = Annotated[
    str, Field(max_length=64, description="A day (2026-11-20), or an ISO 8601 time (2026-11-20T09:00:00+01:00).")
]
JsonMetadata = Annotated[dict[str, Any], AfterValidator(_check_json)]


class MemoryRequest(OperationRequest):
    """The base of all requests. Unknown fields are refused, and null counts as not given."""

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, given: object) -> object:
        """Remove nulls where null is not a value: models send null for what they have no value for."""
        if not isinstance(given, dict):
            return given
        never = {name for name, field in cls.model_fields.items() if field.default is not None}
        said = cast("dict[str, object]", given)
        return {name: value for name, value in said.items() if value is not None or name not in never}

    def provided(self, *but: str) -> Mapping[str, Any]:
        """The given fields by name, without nulls: models send null for what they have no value for."""
        return self.model_dump(exclude_unset=True, exclude_none=True, exclude=set(but))

    def changes(self, *but: str) -> Mapping[str, Any]:
        """The given fields by name. Null removes a value."""
        return self.model_dump(exclude_unset=True, exclude=set(but))


class EmptyRequest(MemoryRequest):
    """A request without fields."""


class RecordIdRequest(MemoryRequest):
    """The id of a record."""

    id: IdText = Field(description="Its id.")


class PagedRequest(MemoryRequest):
    """A page of a list."""

    limit: int = Field(20, ge=1, le=100, description="At most so many.")
    offset: int = Field(0, ge=0, le=10_000_000, description="Leave out so many first.")


class ZoneQuery(MemoryRequest, extra="ignore"):
    """The time zone of days, and of times without one."""

    timezone: ZoneName | None = None


class ListQuery(PagedRequest):
    """Which part of a list of the HTTP API, and the time zone of its days."""

    limit: int = Field(50, ge=1, le=1000, description="At most so many.")
    tags: WordList | None = Field(None, description="One of these at least, with commas between them.")
    timezone: ZoneName | None = None


class ToolAnswer(BaseModel):
    """The base of every structured answer. It has whole records; the text beside it has what matters."""

    model_config = ConfigDict(frozen=True, defer_build=True)


PersonRun = Callable[[RecordServices, PersonScope, Any], Awaitable[Any]]
# Every tool costs a model attention: agents use these to report on their work, under their own names.
AGENT_WORK_TOOLS = frozenset({"accept_ai_task", "update_ai_task", "complete_ai_task", "fail_ai_task"})


def for_person(run: PersonRun) -> Run:
    """Run an operation with the records of the person who calls."""

    async def run_for_person(services: RecordServices, call: Call, request: object) -> Any:  # noqa: ANN401 - the operation's answer
        return await run(services, PersonScope.for_caller(call.caller), request)

    return run_for_person


def memory_tool(
    title: str, description: str, response: type[BaseModel], *, name: str = "", outside_contract: bool = False
) -> McpTool:
    """How MCP offers an operation on a person's records. Agents on a Letta server do not get these tools: so many would
    hide their other tools."""
    return McpTool(
        name=name,
        title=title,
        description=description,
        path=McpPath.MEMORY,
        response=response,
        for_agent=name in AGENT_WORK_TOOLS,
        plain_errors=True,
        handed_to_agents=False,
        outside_contract=outside_contract,
    )


def has_person(_services: object, caller: Caller) -> bool:
    """Whether a turn is for a known person: all visitors of the chat without a key share a credential of nobody."""
    return caller.user_id is not None and (caller.credential_id is None or caller.verified)


def memory_agent_tool(name: str, description: str) -> BuiltinAgentTool:
    """How the built-in agents are offered an operation on the records of the person of a turn."""
    return BuiltinAgentTool(name=name, description=description, available=has_person)


async def person_zone(services: RecordServices, scope: PersonScope, named: str | None = None) -> ZoneInfo:
    """The named zone, or the person's own."""
    return find_zone(named, "" if named and named.strip() else await services.people.zone(scope))


T = TypeVar("T")
HOUR_MINUTES = 60
MAX_LINE = 300


def format_time(at: datetime, zone: ZoneInfo) -> str:
    """`Fri 2026-11-20 09:00 CET`."""
    local = at.astimezone(zone)
    return f"{local:%a %Y-%m-%d %H:%M} {local.tzname()}"


def format_span(start: datetime, end: datetime | None, zone: ZoneInfo) -> str:
    """A span of time; the day is written once if both ends are on it."""
    if end is None:
        return f"since {format_time(start, zone)}"
    first, last = start.astimezone(zone), end.astimezone(zone)
    if first.date() == last.date():
        return f"{first:%a %Y-%m-%d %H:%M}-{last:%H:%M} {last.tzname()}"
    return f"{format_time(start, zone)} to {format_time(end, zone)}"


def format_when(start: datetime, end: datetime | None, zone: ZoneInfo) -> str:
    """The time of something whose end may be unknown."""
    return format_time(start, zone) if end is None else format_span(start, end, zone)


def format_minutes(minutes: int) -> str:
    """`45 min`, `2 h`, `1 h 25 min`."""
    hours, rest = divmod(minutes, HOUR_MINUTES)
    return " ".join(
        part for part in (f"{hours} h" if hours else "", f"{rest} min" if rest or not hours else "") if part
    )


def format_count(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def join_parts(parts: Iterable[str | None]) -> str:
    """The parts that are not empty, with commas between them."""
    return ", ".join(part for part in parts if part)


def labelled_line(label: str, text: str | None) -> str:
    """A line for a longer text, shortened; nothing if there is no text."""
    return f"{label}: {one_line(text, MAX_LINE)}" if text else ""


def labelled_text(label: str, text: str | None) -> str:
    """A longer text with its label, in full."""
    return f"{label}: {text}" if text else ""


def format_tags(tags: Sequence[str]) -> str:
    return f"tags {'/'.join(tags)}" if tags else ""


def join_lines(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def format_page(page: RecordPage[T], tell: Callable[[T], str], noun: str, plural: str = "", *, none: str) -> str:
    """A page of a list: how many there are, which these are, and how to get the next ones."""
    if not page.total:
        return none
    every, last = format_count(page.total, noun, plural), page.offset + len(page.items)
    if not page.items:
        return f"{every} in all, but none from offset {page.offset} on; begin again with offset 0"
    following = f"; offset {last} for more" if page.has_more else ""
    where = f"showing {page.offset + 1}-{last} of {page.total:,}{following}"
    return join_lines(f"{every}, {where}:", *map(tell, page.items))


def format_counts(title: str, counts: Mapping[str, int]) -> str:
    """`By status: pending 3, completed 1`; zeros are left out."""
    said = ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in counts.items() if number)
    return f"{title}: {said}" if said else ""


class RouteFields(TypedDict, total=False):
    """The fields of a route that are as in `RestRoute`."""

    name: str
    query: type[BaseModel]
    body: type[BaseModel]
    body_required: bool
    body_example: Mapping[str, Any]
    status: int


def memory_route(
    method: str,
    path: str,
    *,
    response: Any,  # noqa: ANN401 - any type of an answer
    run: PersonRun | None = None,
    example: object = None,
    responses: ResponseDocs | None = None,
    **fields: Unpack[RouteFields],
) -> RestRoute:
    """A route for the records of the person who calls. `run` takes their scope in the place of the call.

    `example` is an example of the answer.
    """
    docs: ResponseDocs = {} if example is None else example_response(example, fields.get("status", 200))
    return RestRoute(
        method=method,
        path=path,
        response=response,
        run=None if run is None else for_person(run),
        responses={**docs, **(responses or {})},
        detailed_errors=True,
        **fields,
    )
