"""The claim about the pages: much data in an installation does not make them slow."""

from bench.claims import Verdict
from bench.pages.measure import LISTS, PAGES, PagesMeasured

MOST = 3.0


def pages_verdicts(measured: PagesMeasured) -> list[Verdict]:
    much = measured.much
    installation = f"{much.rows:,} journal rows, {much.schedules:,} schedules and {much.tools:,} tools"
    return [
        Verdict(
            f"{page} takes at most {MOST:g}x as long with {installation} as {_than(page)} (p50)",
            measured.ratio(page),
            MOST,
            (),
        )
        for page in PAGES
    ]


def _than(page: str) -> str:
    return "with nothing" if page in LISTS else "where it is the only one"


def table(measured: PagesMeasured) -> str:
    rows = [("page", "nothing, or one", "much", "x")]
    for page in PAGES:
        little, full = (sorted(taken[page])[len(taken[page]) // 2] * 1e3 for taken in (measured.little, measured.full))
        rows.append((page, f"{little:.1f} ms", f"{full:.1f} ms", f"{measured.ratio(page):.2f}"))
    widths = [max(len(row[index]) for row in rows) for index in range(4)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
