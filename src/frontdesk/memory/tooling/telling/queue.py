"""The agents' work in words."""

import json
from collections.abc import Sequence
from zoneinfo import ZoneInfo

from frontdesk.loop.text import one_line
from frontdesk.memory.model import AiTask, Guardrails
from frontdesk.memory.tooling.telling.words import SHOWN, about, length, lines, when, whole

STEPS = 5
RESULT = 4000


def work_line(work: AiTask, zone: ZoneInfo) -> str:
    """On one line, with the id that other tools ask for."""
    return f"- {one_line(work.objective, SHOWN)} (id {work.id}): {_standing(work, zone)}"


def work_told(work: AiTask, zone: ZoneInfo) -> str:
    """With all that an agent needs to do it."""
    return lines(
        work_line(work, zone).removeprefix("- "),
        whole("Objective", "" if one_line(work.objective, SHOWN) == work.objective else work.objective),
        whole("Deliverables", work.deliverables),
        whole("Context", work.context),
        whole("Acceptance criteria", work.acceptance_criteria),
        f"For task {work.task_id}",
        f"After {', '.join(work.dependencies)}" if work.dependencies else "",
        _limits(work.guardrails),
        _held(work, zone),
        whole("Progress", work.progress_message),
        whole("Error", work.error_message),
        whole("Result", _shortened(json.dumps(work.execution_result, ensure_ascii=False)))
        if work.execution_result
        else "",
        _history(work, zone),
    )


def waiting_told(waiting: Sequence[AiTask], zone: ZoneInfo, *, more: bool) -> str:
    """What waits for an agent, the oldest first."""
    if not waiting:
        return "Nothing waits for this agent."
    head = f"The oldest {len(waiting)} of what waits, there is more:" if more else f"{len(waiting)} waiting:"
    return lines(head, *(work_line(work, zone) for work in waiting))


def _standing(work: AiTask, zone: ZoneInfo) -> str:
    return about(
        [
            work.status.replace("_", " "),
            f"{work.priority} priority",
            f"for {work.agent_name or work.agent_id}",
            work.task_type.replace("_", " "),
            f"mode {work.mode}",
            f"due {when(work.due_at, zone)}" if work.due_at else "",
        ]
    )


def _limits(rails: Guardrails) -> str:
    said = about(
        [
            f"at most ${rails.costCapUSD:g}" if rails.costCapUSD is not None else "",
            f"at most {length(rails.timeCapMin)}" if rails.timeCapMin is not None else "",
            "to be executed only once the person approves" if rails.requiresHumanApproval else "",
            f"data {'/'.join(rails.dataScopes)}" if rails.dataScopes else "",
        ]
    )
    return f"Limits: {said}" if said else ""


def _held(work: AiTask, zone: ZoneInfo) -> str:
    if work.leased_by is None or work.leased_until is None:
        return ""
    return f"Taken by {work.leased_by} until {when(work.leased_until, zone)}; each update of it keeps it longer"


def _history(work: AiTask, zone: ZoneInfo) -> str:
    steps = [
        f"{when(step.at, zone)} {step.to_status}{f' by {step.by_agent}' if step.by_agent else ''}"
        for step in work.history[-STEPS:]
    ]
    return f"History: {'; '.join(steps)}" if steps else ""


def _shortened(text: str) -> str:
    return text if len(text) <= RESULT else f"{text[:RESULT]}… (the structured answer has it all)"
