"""The claims about editors: what the protocol adds to a turn of the host, beside what the SDK's own agent takes."""

from collections.abc import Iterator, Sequence
from statistics import median

from bench.claims import Verdict
from bench.editors.measure import EditorsMeasured
from bench.editors.overhead import TALK, Pairs, Part
from bench.editors.starts import ratios
from bench.editors.streams import WORDS, Streams
from bench.editors.ways import Way
from bench.editors.wear import Wear

MOST_TURN_MS = 5.0
MOST_SLOW_TURN_MS = 10.0
MOST_FIRST_MS = 3.0
MOST_STARTS = 1.2
MOST_GROWN_MB = 20.0


def editors_verdicts(measured: EditorsMeasured) -> list[Verdict]:
    return [
        *(verdict for kind, pairs in measured.turns.items() for verdict in _turn(kind, pairs)),
        _first(measured.turns[TALK]),
        _start(ratios(measured.starts)),
        _update(measured.streams),
        *_wear(measured.wear),
    ]


def _turn(kind: str, pairs: Pairs) -> Iterator[Verdict]:
    """The median of the rounds for each: one round may have shared the machine with something else."""
    for share, most in ((50, MOST_TURN_MS), (95, MOST_SLOW_TURN_MS)):
        rounds = pairs.added_ms(Part.WHOLE, share)
        claim = f"an editor's turn takes at most {most:g} ms more than the host's, called directly (p{share}, {kind})"
        yield Verdict(claim, median(rounds), most, tuple(rounds))


def _first(pairs: Pairs) -> Verdict:
    """Only for turns that begin with text: in a turn with a tool, the tool call is shown before the text."""
    rounds = pairs.added_ms(Part.FIRST, 50)
    claim = f"its first text comes at most {MOST_FIRST_MS:g} ms later (p50, {TALK})"
    return Verdict(claim, median(rounds), MOST_FIRST_MS, tuple(rounds))


def _start(found: Sequence[float]) -> Verdict:
    claim = f"from start to the answer of initialize takes at most {MOST_STARTS:g}x as long as the SDK's echo agent"
    return Verdict(claim, median(found), MOST_STARTS, tuple(found))


def _update(streams: Streams) -> Verdict:
    """For a value that must be larger, the claim is an inverse ratio that must not exceed 1."""
    found = streams.ratios(Way.SDK, Way.PLAIN)
    claim = f"{WORDS:,} updates go out faster on our own wire than on the SDK's ({1 / median(found):.1f}x)"
    return Verdict(claim, median(found), 1.0, tuple(found))


def _wear(wear: Wear) -> Iterator[Verdict]:
    after = f"after {wear.prompts:,} prompts and {wear.loads:,} loads and closes of sessions"
    yield Verdict(f"{after} the process has grown by at most {MOST_GROWN_MB:g} MB", wear.grown_mb, MOST_GROWN_MB, ())
    claim = f"{after} it has no thread, no file descriptor and no child more"
    yield Verdict(claim, float(wear.after.more_than(wear.before)), 0.0, ())
