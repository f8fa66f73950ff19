"""The differential run: everything that the SDK does ours does too, but for the fixes that its page lists."""

import re
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.referees.platform.cases import Case
from tests.referees.platform.fixes import RULES, observed
from tests.referees.platform.fixes.pair import Pair
from tests.referees.platform.matrix import answers, audiences, chats, entries, ids, requests, surroundings
from tests.referees.platform.relay import Relay, open_relay
from tests.referees.platform.running import OURS, SDK, run
from tests.referees.platform.safety import unsafe
from tests.requirements import shows
from tests.support.platform import LocalPlatform, local_platform

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "agent365.md"
ROW = re.compile(r"^\| `([a-z0-9-]+)` \| \S", re.MULTILINE)
MATRIX = {
    "answers": answers.CASES,
    "audiences": audiences.CASES,
    "chats": chats.CASES,
    "entries": entries.CASES,
    "ids": ids.CASES,
    "requests": requests.CASES,
    "surroundings": surroundings.CASES,
}
# So many in one test that several workers can share them.
BATCH = 300
SERVERS = {"mcpServers": [{"mcpServerName": "mail", "mcpServerUniqueName": "mcp_MailTools", "publisher": "somebody"}]}


def batches() -> Iterator[tuple[str, tuple[Case, ...]]]:
    for name, cases in MATRIX.items():
        for number, start in enumerate(range(0, len(cases), BATCH), 1):
            yield f"{name}-{number}", cases[start : start + BATCH]


@pytest.fixture(scope="module")
def platform() -> Generator[LocalPlatform]:
    with local_platform(SERVERS, tokens="off") as running:
        yield running


@shows("A365-SAME")
@shows("A365-HOSTILE")
@pytest.mark.parametrize("cases", [pytest.param(cases, id=name) for name, cases in batches()])
async def test_requests_and_results_differ_from_the_sdk_by_the_fixes_that_a_case_names_and_no_others(
    cases: tuple[Case, ...], platform: LocalPlatform, tmp_path: Path
) -> None:
    folder = tmp_path / "agent"
    folder.mkdir()
    async with open_relay(platform.url) as relay:
        shown = {case.name: (await seen(case, relay, folder), case.fixes) for case in cases}
    wrong = [f"{name}: {sorted(seen)}, not {sorted(named)}" for name, (seen, named) in shown.items() if seen != named]
    assert not wrong, "\n".join(wrong)


@shows("A365-SAME")
def test_every_fix_is_documented_and_shown_by_a_case() -> None:
    documented = ROW.findall(PAGE.read_text())
    named = frozenset[str]().union(*(case.fixes for cases in MATRIX.values() for case in cases))
    assert sorted(documented) == sorted(set(documented)) == sorted(named) == sorted(RULES)


@shows("A365-SAME")
def test_no_two_cases_go_by_one_name() -> None:
    for cases in MATRIX.values():
        names = [case.name for case in cases]
        assert len(names) == len(set(names)), sorted(name for name in set(names) if names.count(name) > 1)


async def seen(case: Case, relay: Relay, folder: Path) -> frozenset[str]:
    """The fixes that a case shows, and whatever is wrong with our side of it."""
    sdk = await run(case, SDK, relay, folder)
    ours = await run(case, OURS, relay, folder)
    return observed(Pair(case, sdk, ours, relay.url)) | unsafe(case, ours)
