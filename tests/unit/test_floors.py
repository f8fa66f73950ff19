"""The layers of the packages, held by their import contracts."""

import subprocess
import sys
from pathlib import Path

from tests.requirements import shows
from tests.support.desk import ROOT

SECONDS = 120


@shows("FLOORS")
def test_imports_point_down_and_siblings_do_not_meet() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout
