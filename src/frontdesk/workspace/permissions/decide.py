"""Whether a deed may be done, is asked about, or is refused, by the mode and by what was said before; no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from frontdesk.workspace.permissions.model import Deed, Kind, Mode

FREE = frozenset({Kind.READ, Kind.SEARCH, Kind.THINK})
PLANNING = (
    "This is plan mode, in which nothing is changed or run. Describe what you would do instead; "
    "the person leaves plan mode by choosing another mode (ask, accept-edits or auto) in their editor."
)


class Answer(StrEnum):
    """What comes of a deed."""

    ALLOW = "allow"
    ASK = "ask"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer, and where it is a refusal, why, in words for the model."""

    answer: Answer
    reason: str = ""


ALLOWED = Verdict(Answer.ALLOW)
ASKED = Verdict(Answer.ASK)


def decide(mode: Mode, deed: Deed, remembered: Mapping[str, bool]) -> Verdict:
    """What is to be done about a deed; `remembered` is what the person said for good, by scope."""
    said = remembered.get(deed.scope) if deed.scope else None
    if said is False:
        return Verdict(Answer.REFUSE, f"The person has rejected {deed.covers or deed.title} for good; do without it.")
    if deed.harmless or deed.kind in FREE:
        return ALLOWED
    if mode is Mode.PLAN:
        return Verdict(Answer.REFUSE, PLANNING)
    if deed.each_time:
        return ASKED
    return ALLOWED if said or _is_free(mode, deed.kind) else ASKED


def _is_free(mode: Mode, kind: Kind) -> bool:
    return mode is Mode.AUTO or (mode is Mode.ACCEPT_EDITS and kind is Kind.EDIT)
