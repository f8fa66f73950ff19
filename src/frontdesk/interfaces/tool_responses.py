"""Defines the response models of tool search and selection that MCP, REST and the command line share."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from frontdesk.text import one_line
from frontdesk.tools.finder import ToolMatch
from frontdesk.tools.operations import DESCRIPTION_LENGTH_SHOWN
from frontdesk.tools.selection import SelectionResult, ToolChoice
from frontdesk.tools.service import FindToolsResult


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
    def of(cls, finding: ToolMatch, *, detailed: bool = False) -> "FoundTool":
        tool = finding.tool
        required, optional = tool.parameter_names
        return cls(
            id=tool.id,
            name=tool.api_name,
            server=tool.server,
            description=one_line(tool.description, DESCRIPTION_LENGTH_SHOWN),
            score=round(finding.score, 1),
            reason=finding.reason,
            required=required,
            optional=optional,
            stale=tool.stale,
            parameters=tool.parameters if detailed else None,
        )


class ChosenTool(BaseModel):
    """What became of one tool, and why."""

    model_config = ConfigDict(frozen=True)

    name: str
    id: str | None = None
    reason: str
    score: float | None = None

    @classmethod
    def of_choices(cls, choices: Sequence[ToolChoice]) -> "list[ChosenTool]":
        return [cls(name=one.name, id=one.id, reason=one.reason, score=_round_score(one.score)) for one in choices]


class AgentToolChanges(BaseModel):
    """What became of an agent's tools."""

    model_config = ConfigDict(frozen=True)

    attached: list[ChosenTool]
    kept: list[ChosenTool]
    detached: list[ChosenTool]
    skipped: list[ChosenTool] = Field(description="What fits and was not attached.")
    failed: list[ChosenTool] = Field(description="What the agent host did not do.")
    dry_run: bool = Field(description="Nothing was changed: this is what would have been done.")
    unknown: list[str] = Field(description="What was named and is not there: servers, and tools to keep.")

    @classmethod
    def of(cls, selection: SelectionResult) -> "AgentToolChanges":
        return cls(**selection_fields(selection))


class ToolSelectionResponse(AgentToolChanges):
    """What was found for an agent, and what became of its tools."""

    found: list[FoundTool] = Field(description="The best first.")
    nothing_relevant: bool = Field(description="No tool reaches the score that was asked for.")
    best_score: float | None = Field(None, description="The score of the best, also of one below what was asked for.")
    by_meaning: bool = Field(description="False: only words were compared.")
    follow_up: bool = Field(description="The agent is called on again once its run is over.")
    note: str = ""
    servers: list[str] = Field(description="Where tools come from.")

    @classmethod
    def of_result(cls, outcomes: FindToolsResult, *, detailed: bool = False) -> "ToolSelectionResponse":
        found, said = outcomes.found, selection_fields(outcomes.selection)
        said["unknown"] = [*found.unknown, *outcomes.selection.unknown]
        return cls(
            **said,
            found=[FoundTool.of(finding, detailed=detailed) for finding in found.findings],
            nothing_relevant=found.nothing_relevant,
            best_score=_round_score(found.best),
            by_meaning=found.by_meaning,
            follow_up=outcomes.follow_up,
            note=outcomes.note,
            servers=list(outcomes.servers),
        )


def selection_fields(selection: SelectionResult) -> dict[str, Any]:
    names = ("attached", "kept", "detached", "skipped", "failed")
    said = {"dry_run": selection.dry_run, "unknown": list(selection.unknown)}
    return {name: ChosenTool.of_choices(getattr(selection, name)) for name in names} | said


def _round_score(score: float | None) -> float | None:
    return None if score is None else round(score, 1)
