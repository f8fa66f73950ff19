"""The time line: what ended before now and what comes after, as bars of equal stretches of time."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from frontdesk.schedule.model import SECOND, Standing, moment
from frontdesk.schedule.overview.model import Around

HOUR = 3600 * SECOND
# (its name in the address, how it is called, how far to each side)
SPANS = (("1h", "1 hour", HOUR), ("6h", "6 hours", 6 * HOUR), ("1d", "1 day", 24 * HOUR), ("7d", "7 days", 168 * HOUR))
USUAL = "1d"
EACH_SIDE = 36
BAR = 16
WIDTH = 2 * EACH_SIDE * BAR
# Above the base stands what went well and what comes, below it what was given up.
UP, DOWN = 80, 40
LEAST = 5
COMING, LEFT_OUT = "coming", "left-out"
AHEAD = "to come"
NAMES = {Standing.DELIVERED: "delivered", Standing.DEAD: "given up"}


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle of the drawing, and what it says when one points at it."""

    x: int
    y: int
    height: int
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Strip:
    """The drawing, and the same in words."""

    bars: Sequence[Bar]
    labels: Sequence[str]
    summary: str
    more: bool
    width: int = WIDTH
    height: int = UP + DOWN
    base: int = UP
    now: int = WIDTH // 2
    bar: int = BAR - 2


def span_of(name: str | None) -> tuple[str, str, int]:
    """The span of this name, or the usual one."""
    return next((one for one in SPANS if one[0] == name), next(one for one in SPANS if one[0] == USUAL))


def draw(around: Around, now_us: int, name: str, span_us: int) -> Strip:
    """Bars as high as there are many, each side of now as wide as the span."""
    counts = Counter(_places(around, now_us, span_us))
    highest = max((sum(_of_stretch(counts, at, below=False)) for at, _ in counts), default=1)
    deepest = max((sum(_of_stretch(counts, at, below=True)) for at, _ in counts), default=1)
    bars: list[Bar] = []
    for at in sorted({at for at, _ in counts}):
        top = UP
        for kind in (Standing.DELIVERED, COMING, LEFT_OUT):
            if number := counts[at, kind]:
                height = max(LEAST, (UP - 4) * number // max(highest, 1))
                top = max(0, top - height)
                bars.append(Bar(at * BAR + 1, top, height, kind, _title(at, kind, number, now_us, span_us)))
        if number := counts[at, Standing.DEAD]:
            height = max(LEAST, (DOWN - 4) * number // max(deepest, 1))
            bars.append(
                Bar(at * BAR + 1, UP, height, Standing.DEAD, _title(at, Standing.DEAD, number, now_us, span_us))
            )
    return Strip(bars, _labels(now_us, span_us), _summary(around, name), around.more)


def _places(around: Around, now_us: int, span_us: int) -> Iterable[tuple[int, str]]:
    """For each time the stretch it falls into, and what it is."""
    stretch = span_us / EACH_SIDE
    last = 2 * EACH_SIDE - 1
    for at in around.ahead:
        # What is overdue stands right after now.
        yield min(last, EACH_SIDE + max(0, int((at - now_us) / stretch))), COMING
    for at, standing in around.behind:
        kind = standing if standing in NAMES else LEFT_OUT
        yield min(EACH_SIDE - 1, max(0, EACH_SIDE - 1 - int((now_us - at) / stretch))), kind


def _of_stretch(counts: Counter[tuple[int, str]], at: int, *, below: bool) -> Iterable[int]:
    return (number for (place, kind), number in counts.items() if place == at and (kind == Standing.DEAD) is below)


def _title(at: int, kind: str, number: int, now_us: int, span_us: int) -> str:
    begin = now_us + (at - EACH_SIDE) * span_us // EACH_SIDE
    end = begin + span_us // EACH_SIDE
    said = {COMING: AHEAD, LEFT_OUT: "left out or cancelled", **NAMES}[kind]
    return f"{moment(begin):%a %d %b %H:%M} to {moment(end):%H:%M} UTC: {number} {said}"


def _labels(now_us: int, span_us: int) -> list[str]:
    shape = "%a %d %b" if span_us > 48 * HOUR else "%a %H:%M"
    left, right = (
        [moment(now_us + sign * span_us // 2 * far).strftime(shape) for far in fars]
        for sign, fars in ((-1, (2, 1)), (1, (1, 2)))
    )
    return [*left, "now", *right]


def _summary(around: Around, name: str) -> str:
    """The drawing in words, for who cannot see it."""
    ended = Counter(standing for _, standing in around.behind)
    others = sum(ended.values()) - ended[Standing.DELIVERED] - ended[Standing.DEAD]
    parts = [f"{ended[one]} {said}" for one, said in NAMES.items()]
    parts += [f"{others} left out or cancelled"] if others else []
    length = name.removeprefix("1 ")
    return f"In the last {length}: {', '.join(parts)}. In the next {length}: {len(around.ahead)} {AHEAD}."
