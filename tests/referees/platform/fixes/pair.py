"""Both runs of one case, and what rules ask about them."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jwt

from tests.referees.platform.cases import Case, Listing
from tests.referees.platform.comparing import Difference
from tests.referees.platform.running import Raised, Run, Sent

CLAIMS = ("xms_par_app_azp", "appid", "azp")
VISIBLE = re.compile(r"[\x20-\x7e]+")
BEARER = re.compile(r"\s*bearer\s+", re.IGNORECASE)
LONGEST = 256
# Where the two sides part when one of them sends nothing, or gets another answer.
ENDS = frozenset({"requests", "outcome", "words", "succeeded", "errors"})


@dataclass(frozen=True, slots=True)
class Pair:
    """A case and what each side made of it; `platform` is where both went."""

    case: Case
    sdk: Run
    ours: Run
    platform: str

    @property
    def listing(self) -> Listing | None:
        return self.case.call if isinstance(self.case.call, Listing) else None

    @property
    def is_chat(self) -> bool:
        return self.listing is None

    @property
    def targets_differ(self) -> bool:
        return any(
            theirs.target != mine.target for theirs, mine in zip(self.sdk.requests, self.ours.requests, strict=False)
        )

    def variable(self, name: str) -> str | None:
        said = self.case.environment.get(name)
        return None if said is None else said.replace("{platform}", self.platform)


Rule = Callable[[Pair, Difference], bool]


def error_of(run: Run) -> BaseException | None:
    """What a run raised, or gave as the reason of a failure."""
    match run.outcome:
        case Raised(error=error):
            return error
        case Sent(errors=errors) if errors:
            return errors[0]
        case _:
            return None


def words_of(run: Run) -> str:
    error = error_of(run)
    return "" if error is None else str(error)


def bare(token: str) -> str:
    return BEARER.sub("", token, count=1).strip()


def sendable(value: object) -> bool:
    """Whether a header holds it as it is."""
    return isinstance(value, str) and bool(VISIBLE.fullmatch(value.strip())) and len(value.strip()) <= LONGEST


def reached(whole: object, *path: str) -> Any:
    """What stands at a path of attributes, or None."""
    for name in path:
        try:
            whole = getattr(whole, name, None)
        except (TypeError, RuntimeError):
            return None
    return whole


def sdk_id(pair: Pair) -> object:
    """The id that the SDK finds on the turn or else in the token, usable or not."""
    call = pair.listing
    if call is None:
        return None
    said = reached(call.turn, "activity", "from_", "agentic_app_blueprint_id")
    if said or not isinstance(call.token, str):
        return said
    try:
        claims = jwt.decode(call.token, options={"verify_signature": False})
    except (jwt.InvalidTokenError, UnicodeEncodeError):
        return None
    return next((claims[name] for name in CLAIMS if claims.get(name)), None)
