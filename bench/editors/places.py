"""The programs that the bench starts, with their settings and folders."""

import sys
from pathlib import Path

from bench.turns import KEY, MODEL

DESK = (sys.executable, "-m", "frontdesk", "acp")
ECHO = (sys.executable, str(Path(__file__).with_name("echo.py")))
PLAIN = (sys.executable, "-m", "bench.editors.plain")
NOTES = "notes.txt"


def settings_of(data: Path, url: str) -> dict[str, str]:
    """An installation of its own in `data`, which uses the model server at `url`."""
    return {
        "FRONTDESK_DATA": str(data),
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": KEY,
        "FRONTDESK_MODEL": f"openai:{MODEL}",
    }


def work_in(folder: Path) -> Path:
    """A work folder with a file to read."""
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    (work / NOTES).write_text("The train leaves at seven.\n" * 40)
    return work
