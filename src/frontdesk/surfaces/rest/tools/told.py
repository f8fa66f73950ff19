"""What the tools API answers besides what every door tells of a search."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from frontdesk.journal.store import ToolUse
from frontdesk.surfaces.findings import FoundTool
from frontdesk.tools.catalogue.crawl import Stage, Step
from frontdesk.tools.catalogue.roster.model import ServerState
from frontdesk.tools.finding import Found
from frontdesk.tools.gateway.result import CallResult
from frontdesk.tools.looking import Explanation, Page
from frontdesk.tools.model import CatalogueTool
from frontdesk.tools.rights.model import Rule


class Shape(BaseModel):
    """JSON as the contract has it: snake_case."""

    model_config = ConfigDict(frozen=True)


class Results(Shape):
    """What fits, the best first."""

    found: list[FoundTool]
    nothing_relevant: bool
    best_score: float | None = Field(None, description="Also of one below the score that was asked for.")
    by_meaning: bool
    searched: int = Field(description="How many tools there are.")
    unknown: list[str] = Field(description="Which of the servers that were named there are not.")

    @classmethod
    def of(cls, found: Found, *, detailed: bool) -> "Results":
        return cls(
            found=[FoundTool.of(one, detailed=detailed) for one in found.findings],
            nothing_relevant=found.nothing_relevant,
            best_score=None if found.best is None else round(found.best, 1),
            by_meaning=found.by_meaning,
            searched=found.searched,
            unknown=list(found.unknown),
        )


class ToolShape(Shape):
    """A tool of the catalogue."""

    id: str
    name: str = Field(description="What to call it by.")
    server: str
    kind: str
    description: str
    required: list[str]
    optional: list[str]
    standing: str = Field(description="ready, or held: it changed, and waits for a review.")
    change: str = Field(description="What changed since it was approved; empty where nothing did.")
    stale: bool = Field(description="Its server did not answer lately.")
    seen_at: datetime | None = None
    changed_at: datetime | None = None

    @staticmethod
    def fields_of(tool: CatalogueTool) -> dict[str, Any]:
        required, optional = tool.parameter_names
        same = ("id", "server", "kind", "description", "standing", "change", "stale", "seen_at", "changed_at")
        named = {"name": tool.api_name, "required": required, "optional": optional}
        return {field: getattr(tool, field) for field in same} | named

    @classmethod
    def of(cls, tool: CatalogueTool) -> "ToolShape":
        return cls(**cls.fields_of(tool))


class WholeTool(ToolShape):
    """A tool with all that is known of it. `other` is the version that does not count, where it changed."""

    parameters: Mapping[str, Any]
    annotations: Mapping[str, Any]
    other: Mapping[str, Any] | None = None

    @classmethod
    def whole(cls, tool: CatalogueTool, other: Mapping[str, Any] | None) -> "WholeTool":
        return cls(**cls.fields_of(tool), parameters=tool.parameters, annotations=tool.annotations, other=other)


class Tools(Shape):
    """A page of tools; `next` goes into `after`."""

    tools: list[ToolShape]
    next: str | None = None

    @classmethod
    def of(cls, page: Page) -> "Tools":
        return cls(tools=[ToolShape.of(tool) for tool in page.tools], next=page.next)


class Called(Shape):
    """What a tool answered: its blocks and structured content as they came."""

    ok: bool
    content: Sequence[Mapping[str, Any]]
    structured: Mapping[str, Any] | None = None
    error: str | None = None

    @classmethod
    def of(cls, result: CallResult) -> "Called":
        return cls(ok=result.ok, content=result.content, structured=result.structured, error=result.error)


class Asking(Shape):
    """How a server answered when it was asked for its tools."""

    server: str
    ok: bool
    tools: int
    told: str

    @classmethod
    def of(cls, step: Step) -> "Asking":
        return cls(server=step.server, ok=step.stage is not Stage.FAILED, tools=step.tools, told=step.told)


class Refreshed(Shape):
    """How each server answered."""

    servers: list[Asking]


class Noticed(Shape):
    """Something a server did to its tools."""

    at: datetime
    what: str


class ServerShape(Shape):
    """A server of tools and how it is; nothing secret is among it."""

    name: str
    transport: str
    place: str
    origin: str
    description: str
    user_token: bool
    hold_changes: bool | None
    status: str
    error: str
    problems: list[str]
    changes: list[Noticed]
    tools: int
    crawled_at: datetime | None = None
    answered_at: datetime | None = None

    @classmethod
    def of(cls, state: ServerState) -> "ServerShape":
        of_spec = ("name", "transport", "place", "origin", "description", "user_token", "hold_changes")
        of_state = ("status", "error", "tools", "crawled_at", "answered_at")
        return cls(
            **{field: getattr(state.spec, field) for field in of_spec},
            **{field: getattr(state, field) for field in of_state},
            problems=list(state.problems),
            changes=[Noticed(at=one.at, what=one.what) for one in state.changes],
        )


class ServerList(Shape):
    """Where tools come from."""

    servers: list[ServerShape]
    tools: int = Field(description="Tools that are found by their words.")
    read: int = Field(description="Of these, tools that are found by meaning as well; the model is reading the others.")


class Explained(Shape):
    """Why a tool is found, or is not."""

    tool: ToolShape
    verdict: str
    place: int | None = Field(None, description="Its place among all tools; nothing where it is far down.")
    score: float
    reason: str
    words: list[str]
    meaning: float
    past_use: float
    searched: int
    by_meaning: bool

    @classmethod
    def of(cls, found: Explanation) -> "Explained":
        one = found.finding
        return cls(
            tool=ToolShape.of(found.tool),
            verdict=found.verdict,
            place=found.place,
            score=round(one.score, 1) if one else 0,
            reason=one.reason if one else "nothing speaks for it",
            words=list(one.words) if one else [],
            meaning=round(one.meaning, 1) if one else 0,
            past_use=round(one.past_use, 1) if one else 0,
            searched=found.searched,
            by_meaning=found.by_meaning,
        )


class UseShape(Shape):
    """What an agent made of a tool."""

    agent_id: str | None
    tool: str
    calls: int
    failed: int
    mean_ms: float
    last_at: datetime

    @classmethod
    def of(cls, use: ToolUse) -> "UseShape":
        return cls(
            agent_id=use.agent_id,
            tool=use.tool,
            calls=use.calls,
            failed=use.failed,
            mean_ms=use.mean_us / 1000,
            last_at=use.last_at,
        )


class UseList(Shape):
    """The most used first."""

    uses: list[UseShape]


class RuleShape(Shape):
    """Who may, or may not, use which tools."""

    id: str
    subject: str
    effect: str
    pattern: str

    @classmethod
    def of(cls, rule: Rule) -> "RuleShape":
        return cls(id=rule.id, subject=rule.subject, effect=rule.effect, pattern=rule.pattern)


class RuleList(Shape):
    """Every rule, the oldest first."""

    rules: list[RuleShape]
