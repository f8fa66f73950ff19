"""Tests Frontdesk without the extra frontdesk[letta]: it works, and says what to install once a Letta server is set."""

import sys
from pathlib import Path

import pytest

from tests.requirements import shows
from tests.support.desk import frontdesk

# Imports of the extra's packages fail, as they do where it is not installed.
BLOCKED = """
import sys
sys.modules |= dict.fromkeys(["letta_client", "httpx", "httpcore"])
from frontdesk.interfaces.cli.main import main
main()
"""
WITHOUT_EXTRA = (sys.executable, "-c", BLOCKED)
LETTA = {"LETTA_BASE_URL": "http://127.0.0.1:1"}
ADVICE = "run pip install 'frontdesk[letta]'"


@shows("DOCTOR")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["up", "--port", "0"], 2), (["doctor"], 1), (["agents", "list"], 2), (["letta", "agents"], 2), (["mcp"], 2)],
    ids=str,
)
def test_a_letta_server_without_the_extra_says_what_to_install(arguments: list[str], code: int, tmp_path: Path) -> None:
    done = frontdesk(*arguments, data=tmp_path / "data", program=WITHOUT_EXTRA, **LETTA)
    assert done.returncode == code
    said = [line for line in (done.stdout + done.stderr).splitlines() if "frontdesk[letta]" in line]
    assert len(said) == 1
    assert ADVICE in said[0]
    assert "letta_client" in said[0]
    assert "Traceback" not in done.stderr


def test_without_a_letta_server_the_extra_is_not_needed(tmp_path: Path) -> None:
    done = frontdesk("doctor", data=tmp_path / "data", program=WITHOUT_EXTRA)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "All is well."), done.stderr
    done = frontdesk("letta", "agents", data=tmp_path / "data", program=WITHOUT_EXTRA)
    assert done.returncode == 2
    assert done.stderr == "frontdesk: No Letta server is set; say where it is in LETTA_BASE_URL\n"
