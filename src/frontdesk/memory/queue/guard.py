"""How far an agent may go with a piece of work: the person's word, the caps, and what must be done first."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from frontdesk.errors import Denied, Invalid
from frontdesk.loop.text import some_of, storable
from frontdesk.memory.model import AiMode, AiTask, Guardrails

APPROVED = "approved"
NAMES = tuple(field.name for field in fields(Guardrails))
SHOWN = 5


def obstacle(task: AiTask, unfinished: Sequence[str]) -> str:
    """What stands in the way of beginning with it now, and what to do about it; empty where nothing does."""
    if not is_cleared(task):
        return (
            "This AI task would be executed, and its guardrails require the person's approval first; "
            "ask the person to approve it, which no agent can"
        )
    if said := beyond(task.guardrails, task.estimated_cost_usd, task.estimated_duration_min):
        return f"Estimated {said}; do it for less, or have the person raise the cap"
    if unfinished:
        return f"Other AI tasks must be completed first: {some_of(unfinished, SHOWN)}"
    return ""


def is_cleared(task: AiTask) -> bool:
    """Whether nobody's approval is missing."""
    needs = task.mode is AiMode.EXECUTE and task.guardrails.requiresHumanApproval
    return not needs or task.metadata.get(APPROVED) is True


def beyond(rails: Guardrails, cost_usd: float | None, minutes: int | None) -> str:
    """Which caps these figures pass, in words; empty where none."""
    passed: list[str] = []
    if rails.costCapUSD is not None and cost_usd is not None and cost_usd > rails.costCapUSD:
        passed.append(f"cost of {cost_usd:g} USD is above the cap of {rails.costCapUSD:g} USD (costCapUSD)")
    if rails.timeCapMin is not None and minutes is not None and minutes > rails.timeCapMin:
        passed.append(f"time of {minutes} minutes is above the cap of {rails.timeCapMin} (timeCapMin)")
    return " and ".join(passed)


def rails_of(given: Mapping[str, Any], old: Guardrails) -> Guardrails:
    """The guardrails with what was given; null takes a cap away."""
    if unknown := [name for name in given if name not in NAMES]:
        raise Invalid(f"guardrails has no '{unknown[0][:100]}'; it has {', '.join(NAMES)}")
    found = dict(given)
    if "dataScopes" in found:
        found["dataScopes"] = tuple(storable(one) for one in found["dataScopes"] or ())
    if found.get("requiresHumanApproval", True) is None:
        found["requiresHumanApproval"] = True
    return replace(old, **found)


def check_loosening(before: AiTask | None, after: AiTask) -> None:
    """What an agent may not do: let itself or another go further than the person did."""
    if before is None:
        if not after.guardrails.requiresHumanApproval:
            raise Denied("An agent cannot waive the person's approval; leave requiresHumanApproval as it is")
    elif before.guardrails != after.guardrails or before.mode is not after.mode:
        raise Denied("An agent cannot change guardrails or mode; ask the person to do it")
