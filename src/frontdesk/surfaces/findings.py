"""What a search or a selection of tools came to, as every door tells it."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from frontdesk.loop.text import one_line
from frontdesk.tools.finding import Finding
from frontdesk.tools.selection.model import Choice, Selection
from frontdesk.tools.service import Outcomes
from frontdesk.tools.telling import DESCRIPTION


class FoundTool(BaseModel):
    """A tool that fits."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(description="server::tool")
    name: str = Field(description="What to call it by.")
    server: str
    description: str = Field(description="Shortened where it is long.")
    score: float = Field(description="How well it fits, from 0 to 100; the same whatever else was found.")
    reason: str = Field(description="The words it shares with the query, its meaning, and past use.")
    required: list[str] = Field(description="The arguments it must be given.")
    optional: list[str] = Field(description="The arguments it may be given.")
    stale: bool = Field(description="Its server did not answer lately.")
    parameters: Mapping[str, Any] | None = Field(None, description="Its JSON schema, where details were asked for.")

    @classmethod
    def of(cls, finding: Finding, *, detailed: bool = False) -> "FoundTool":
        tool = finding.tool
        required, optional = tool.parameter_names
        return cls(
            id=tool.id,
            name=tool.api_name,
            server=tool.server,
            description=one_line(tool.description, DESCRIPTION),
            score=round(finding.score, 1),
            reason=finding.reason,
            required=required,
            optional=optional,
            stale=tool.stale,
            parameters=tool.parameters if detailed else None,
        )


class Chosen(BaseModel):
    """What became of one tool, and why."""

    model_config = ConfigDict(frozen=True)

    name: str
    id: str | None = None
    reason: str
    score: float | None = None

    @classmethod
    def all(cls, choices: Sequence[Choice]) -> "list[Chosen]":
        return [cls(name=one.name, id=one.id, reason=one.reason, score=_rounded(one.score)) for one in choices]


class Changed(BaseModel):
    """What became of an agent's tools."""

    model_config = ConfigDict(frozen=True)

    attached: list[Chosen]
    kept: list[Chosen]
    detached: list[Chosen]
    skipped: list[Chosen] = Field(description="What fits and was not attached.")
    failed: list[Chosen] = Field(description="What the agent host did not do.")
    dry_run: bool = Field(description="Nothing was changed: this is what would have been done.")
    unknown: list[str] = Field(description="What was named and is not there: servers, and tools to keep.")

    @classmethod
    def of(cls, selection: Selection) -> "Changed":
        return cls(**fields_of(selection))


class Selected(Changed):
    """What was found for an agent, and what became of its tools."""

    found: list[FoundTool] = Field(description="The best first.")
    nothing_relevant: bool = Field(description="No tool reaches the score that was asked for.")
    best_score: float | None = Field(None, description="The score of the best, also of one below what was asked for.")
    by_meaning: bool = Field(description="False: only words were compared.")
    follow_up: bool = Field(description="The agent is called on again once its run is over.")
    note: str = ""
    servers: list[str] = Field(description="Where tools come from.")

    @classmethod
    def made(cls, outcomes: Outcomes, *, detailed: bool = False) -> "Selected":
        found, said = outcomes.found, fields_of(outcomes.selection)
        said["unknown"] = [*found.unknown, *outcomes.selection.unknown]
        return cls(
            **said,
            found=[FoundTool.of(finding, detailed=detailed) for finding in found.findings],
            nothing_relevant=found.nothing_relevant,
            best_score=_rounded(found.best),
            by_meaning=found.by_meaning,
            follow_up=outcomes.follow_up,
            note=outcomes.note,
            servers=list(outcomes.servers),
        )


def fields_of(selection: Selection) -> dict[str, Any]:
    names = ("attached", "kept", "detached", "skipped", "failed")
    said = {"dry_run": selection.dry_run, "unknown": list(selection.unknown)}
    return {name: Chosen.all(getattr(selection, name)) for name in names} | said


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 1)
